"""Two implementations, one suite: coupons on orders, on the real service and in the model, call by call.

Locks, payments, returns, events in any order, time, sweeps, gifts; calls sent again, and two at once, whose outcome
must be that of one after the other.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from sqlalchemy import text

from coupon_workers.checking.report import invariants
from coupon_workers.runtime.services import Services
from coupon_workers.schema import Base
from tests.support.gift import at_once
from tests.support.machine import run_machine
from tests.support.order_caller import OrderCaller
from tests.support.order_commands import CARTS, COMMANDS, FIRST, SWEEPS, TEMPLATES, OrderWords
from tests.support.order_model import OrderModel
from tests.support.order_shop import START, OrderShop, ShopClock
from tests.support.order_states import Answer, Call, Coupon
from tests.support.order_sums import Terms

CHECKED_EVERY = 12
CHECKED = {
    "flow_history",
    "ledger_use",
    "live_use",
    "order_money",
    "order_use",
    "overdue_order",
    "refund_money",
    "transfer_link",
    "use_history",
}
"""The rules about orders and gifts: the others ask of claims, which this shop has none of."""

KEPT = "audit_log"
"""Nobody can delete from it."""

EMPTY = "".join(f"DELETE FROM {table.name};" for table in Base.metadata.sorted_tables if table.name != KEPT)


class OrderMachine(RuleBasedStateMachine):
    """Every command acts on the real service and on the model."""

    services: Services

    @initialize()
    def begin(self) -> None:
        """An empty shop with its templates, and three coupons for each of two users."""
        with self.services.engine.begin() as connection:
            connection.execute(text(EMPTY))
        self.clock = ShopClock()
        self.numbers = count(1)
        self.shop = OrderShop(replace(self.services, next_id=lambda _: next(self.numbers)), self.clock)
        self.caller = OrderCaller(self.shop.services)
        self.model = OrderModel(START)
        self.words = OrderWords(self.numbers, self.model)
        self.steps: list[str] = []
        self.templates = {terms: self._template(terms) for terms in TEMPLATES}
        for user in ("ann", "bob"):
            for place in FIRST:
                self.issue(user, place, (-1, 168))

    def _template(self, terms: Terms) -> int:
        expired = {"expired": "extend", "grace_days": terms.grace_days} if terms.grace_days else {}
        return self.shop.template(
            type="percent_off" if terms.percent else "amount_off",
            amount_minor=terms.amount,
            percent_off_bp=terms.percent,
            max_discount_minor=terms.cap,
            threshold_minor=terms.threshold,
            currency=terms.currency,
            scope={"products": {"include": list(terms.products)}},
            stacking={"exclusive": terms.exclusive, "group": terms.group, "priority": terms.priority},
            refund={
                "return": "full_only" if terms.comes_back else "never",
                "threshold": "recheck" if terms.recheck else "keep",
                **expired,
            },
            transferable=terms.transferable,
        )

    @rule(command=COMMANDS)
    def do(self, command: tuple[Any, ...]) -> None:
        """One of the methods below with its arguments, or a call; then both must hold the same."""
        try:
            self._do(command)
        except Exception as error:
            # Two calls at once may go well the next time: Hypothesis then tells no steps.
            error.add_note("\n".join(["the steps:", *self.steps]))
            raise

    def _do(self, command: tuple[Any, ...]) -> None:
        self.model.now = self.clock.pass_by(milliseconds=100)
        self.steps.append(f"{command}")
        if command[0] in ("issue", "quote", "pass_by", "both"):
            getattr(self, command[0])(*command[1:])
        else:
            self.call(command)
        assert {} == differences(self.model.view(), self.caller.view())
        if len(self.steps) % CHECKED_EVERY == 0:
            self._check()

    def issue(self, user: str, place: int, validity: tuple[float, float]) -> None:
        """A coupon of one of the templates."""
        terms = TEMPLATES[place]
        valid_from, valid_to = (self.clock.now + timedelta(hours=hours) for hours in validity)
        number = self.shop.issue(self.templates[terms], user, valid_from=valid_from, valid_to=valid_to)
        self.model.coupons[number] = Coupon(number, user, terms, valid_from, valid_to)

    def pass_by(self, seconds: int) -> None:
        """Time goes on; nobody sweeps."""
        self.model.now = self.clock.pass_by(seconds=seconds)

    def quote(self, user: str, cart: int, choices: list[int]) -> None:
        """Of named coupons, and the best of the wallet."""
        call = Call("quote", {"user": user, "cart": CARTS[cart], "coupons": self.words.chosen(user, choices)})
        assert self.model.answer(call) == self.caller.answer(call)
        if len(self.model.of_user(user)) <= 8:
            assert self.model.best(user, CARTS[cart]) == self.caller.best(user, CARTS[cart])

    def call(self, command: tuple[Any, ...]) -> None:
        """One call, for the first time or again."""
        call = self.words.call(command, self.model)
        if call is None:
            return
        self.words.sent.append(call)
        self.steps[-1] = f"{call}"

        assert self.model.answer(call) == self.caller.answer(call)

    def both(self, first: tuple[Any, ...], second: tuple[Any, ...], same_order: bool) -> None:
        """Two calls at once: all is as after one of the two orders in which they could have come."""
        calls = [call for call in (self.words.call(first, self.model), self.words.call(second, self.model)) if call]
        if len(calls) < 2:
            return
        shared = {"user", "order"} & calls[0].arguments.keys() & calls[1].arguments.keys()
        if same_order and "order" in shared:
            calls[1] = calls[1]._replace(arguments=calls[1].arguments | {n: calls[0].arguments[n] for n in shared})
        self.words.sent += calls
        self.steps[-1] = f"at once {calls}"

        answers = at_once(*(partial(self.caller.answer, call) for call in calls))
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        for sweep in SWEEPS:
            self.caller.answer(Call(sweep, {}))

        view = self.caller.view()
        outcomes = [self._in_turn(calls, turn) for turn in ((0, 1), (1, 0))]
        for told, model in outcomes:
            if model.view() == view and all(map(_agrees, calls, told, answers)):
                self.model = model
                return
        expected = [(told, differences(model.view(), view)) for told, model in outcomes]
        raise AssertionError(f"at once {calls}\nanswered {answers}\nafter either: {expected[0]}\nor: {expected[1]}")

    def _in_turn(self, calls: list[Call], turn: tuple[int, int]) -> tuple[list[Answer], OrderModel]:
        model = copy.deepcopy(self.model)
        told: dict[int, Answer] = {place: model.answer(calls[place]) for place in turn}
        for sweep in SWEEPS:
            model.answer(Call(sweep, {}))
        return [told[0], told[1]], model

    def _check(self) -> None:
        """The independent checker finds nothing, once the sweeps have had their turn."""
        for sweep in SWEEPS:
            call = Call(sweep, {})
            assert self.model.answer(call) == self.caller.answer(call)
        assert {} == differences(self.model.view(), self.caller.view())
        assert [] == [
            breach
            for invariant in invariants(patience_s=0)
            if invariant.name in CHECKED
            for breach in invariant.find(self.shop.services)
        ]

    def teardown(self) -> None:
        """At last, too."""
        if hasattr(self, "templates"):
            self._check()


def differences(expected: dict[str, Any], actual: dict[str, Any]) -> dict[str, Any]:
    """What the model and the database do not say alike: the model's word, then the database's."""
    return {
        name: {
            key: (expected[name].get(key), actual[name].get(key))
            for key in expected[name].keys() | actual[name].keys()
            if expected[name].get(key) != actual[name].get(key)
        }
        if isinstance(expected[name], dict)
        else (expected[name], actual[name])
        for name in expected
        if expected[name] != actual[name]
    }


def _agrees(call: Call, told: Answer, answer: Answer) -> bool:
    """Sweeps step around what others have in hand; an event that meets its order may be told to wait for a sweep."""
    return call.name in SWEEPS or told == answer or call.name == "tell"


@pytest.fixture
def machine(services: Services) -> type[RuleBasedStateMachine]:
    """Makes a machine on the test's servers."""
    return type("Machine", (OrderMachine,), {"services": services})


def test_orders_do_what_their_model_does(machine: type[RuleBasedStateMachine]) -> None:
    """Whatever is called in whatever order, again, and at once."""
    run_machine(machine, examples=70)
