"""What Hypothesis asks of a shop with orders, and how that becomes calls: by what the model knows at that moment.

Commands name orders, coupons and lines by small numbers, so that most of them hit something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.support.order_model import OrderModel
from tests.support.order_states import Call
from tests.support.order_sums import Cart, CartLine, Terms

TEMPLATES = (
    Terms("alone", amount=3_001, threshold=5_000, exclusive=True, recheck=True),
    Terms("amount", amount=2_000, threshold=10_000, transferable=True),
    Terms("capped", percent=3_333, cap=777, products=("p1",)),
    Terms("cash", amount=701, group="g", priority=50, comes_back=False, transferable=True),
    Terms("great", amount=50_000, priority=200, grace_days=1),
    Terms("percent", percent=1_000, threshold=15_000, group="g", recheck=True, grace_days=3),
    Terms("yen", amount=500, currency="JPY"),
)
"""In the order of their names: of equal priority the earlier template's coupon is applied first."""

PLACES = st.sampled_from([1, 1, 5, 5, 3, 3, 2, 2, 0, 4, 6])
FIRST = (1, 5, 3)
"""The templates of which two users have a coupon from the beginning."""

CARTS: tuple[Cart, ...] = (
    (CartLine("1", 10_000, 3),),
    (CartLine("1", 10_000, 1), CartLine("2", 5_000, 2)),
    (CartLine("1", 999, 2), CartLine("2", 1_999, 1), CartLine("3", 2, 1)),
    (CartLine("2", 6_001, 3), CartLine("4", 0, 2), CartLine("1", 333, 3)),
)
OTHERS_COUPON, NOBODYS_COUPON = 10, 11
UNKNOWN = 999_999_999

USERS = st.sampled_from(["ann", "ann", "ann", "ann", "ann", "bob"])
ORDERS = st.integers(0, 9)
"""Below ``FITTING`` one of the user's orders of a fitting status, if there is one."""
FITTING = 9
MORE_UNKNOWN = 2
"""Events come more often of orders that are not there yet."""

NUMBER_OF_ORDERS = 6
CHOICES = st.lists(st.sampled_from([*range(10), *range(10), OTHERS_COUPON, NOBODYS_COUPON]), min_size=1, max_size=3)
CART_CHOICES = st.sampled_from([0, 1, 1, 2, 3])
SECONDS_AGO = st.sampled_from([0, 0, 1, 61, 1_000, 90_000, -60, -400])
"""Negative ones lie in the future, by other clocks than ours."""
PAID_AGO = st.none() | SECONDS_AGO
PIECES = st.none() | st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 1, 2, 9]), st.sampled_from([1, 1, 1, 2, 3])), min_size=1, max_size=3
)
"""Places of lines, of which ``NO_LINE`` is none, and how many of each."""
NO_LINE = 9
NUMBERS = st.integers(0, 2)
VALIDITIES = st.sampled_from([(-1, 168), (-1, 168), (-1, 168), (-1, 0.2), (-1, 24), (1, 48), (-48, -1)])
"""From and to, hours from now."""

CALLS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "lock": st.tuples(st.just("lock"), USERS, ORDERS, CART_CHOICES, CHOICES, st.sampled_from([900, 900, 60])),
    "pay": st.tuples(st.just("pay"), USERS, ORDERS, st.sampled_from([0, 0, 0, 1]), PAID_AGO),
    "pay_directly": st.tuples(st.just("pay_directly"), USERS, ORDERS, NUMBERS, PAID_AGO, CART_CHOICES, CHOICES),
    "release": st.tuples(st.just("release"), USERS, ORDERS),
    "unlock": st.tuples(st.just("unlock"), USERS, st.integers(0, 11), st.booleans()),
    "refund": st.tuples(st.just("refund"), USERS, ORDERS, NUMBERS, PIECES),
    "paid": st.tuples(st.just("tell"), st.just("paid"), USERS, ORDERS, SECONDS_AGO, NUMBERS, PIECES),
    "closed": st.tuples(st.just("tell"), st.just("closed"), USERS, ORDERS, SECONDS_AGO, NUMBERS, PIECES),
    "refunded": st.tuples(st.just("tell"), st.just("refunded"), USERS, ORDERS, SECONDS_AGO, NUMBERS, PIECES),
    "transfer": st.tuples(st.just("transfer"), USERS, st.integers(0, 11), st.sampled_from(["ann", "bob", "cat"])),
    "again": st.tuples(st.just("again"), st.integers(1, 6)),
    "sweep": st.tuples(st.just("sweep")),
    "expire": st.tuples(st.just("expire")),
    "settle_events": st.tuples(st.just("settle_events")),
}
SHARES = {
    "lock": 7,
    "pay": 4,
    "pay_directly": 2,
    "release": 2,
    "unlock": 2,
    "refund": 5,
    "paid": 2,
    "closed": 2,
    "refunded": 2,
}
ONE_CALL = st.sampled_from([name for name in CALLS for _ in range(SHARES.get(name, 1))]).flatmap(CALLS.__getitem__)
ISSUES = st.tuples(st.just("issue"), USERS, PLACES, VALIDITIES)
QUOTES = st.tuples(st.just("quote"), USERS, CART_CHOICES, CHOICES)
PASSES = st.tuples(st.just("pass_by"), st.sampled_from([1, 59, 60, 899, 900, 900, 3_600, 3_600, 86_400, 300_000]))
PAIRS = st.tuples(st.just("both"), ONE_CALL, ONE_CALL, st.booleans())
KINDS = [*[ONE_CALL] * 10, *[ISSUES] * 2, QUOTES, PASSES, PASSES, *[PAIRS] * 5]
SWEEPS = ("sweep", "expire", "settle_events")
COMMANDS = st.sampled_from(KINDS).flatmap(lambda kind: kind)
"""One strategy for all: of rules, Hypothesis turns some off in each example, and the others alone do little."""


@dataclass
class OrderWords:
    """Makes calls of commands. ``numbers``: fresh ones, for events and coupons."""

    numbers: Iterator[int]
    model: OrderModel
    sent: list[Call] = field(default_factory=list)

    def call(self, command: tuple[Any, ...], model: OrderModel) -> Call | None:
        """The call that the command means now; None when it means nothing yet."""
        self.model = model
        name, *asked = command
        if name == "again":
            return self.sent[-min(asked[0], len(self.sent))] if self.sent else None
        if name in SWEEPS:
            return Call(name, {})
        makers: dict[str, Callable[..., dict[str, Any]]] = {
            "lock": self._lock,
            "pay": self._pay,
            "pay_directly": self._pay_directly,
            "release": lambda user, order: {"user": user, "order": self._order(user, order, "locked")},
            "unlock": self._unlock,
            "refund": self._refund,
            "tell": self._tell,
            "transfer": self._transfer,
        }
        return Call(name, makers[name](*asked))

    def _order(self, user: str, choice: int, *fitting: str) -> str:
        """One of a fitting status; or else, and always when ``fitting`` is empty, mostly the next new one."""
        known = {number: order.status for (owner, number), order in self.model.orders.items() if owner == user}
        fit = [number for number, status in known.items() if status in fitting] or list(known)
        if fit and fitting and choice < FITTING:
            return fit[choice % len(fit)]
        new = [number for number in (f"o{n}" for n in range(1, NUMBER_OF_ORDERS + 1)) if number not in known]
        return new[0] if new and choice < 9 else f"o{choice % NUMBER_OF_ORDERS + 1}"

    def _lock(self, user: str, choice: int, cart: int, choices: list[int], ttl: int) -> dict[str, Any]:
        order = self._order(user, choice, *(["locked", "released"] if choice < 3 else []))
        return {"user": user, "order": order, "ttl": ttl} | self._asked(user, order, cart, choices)

    def _pay(self, user: str, choice: int, payment: int, ago: int | None) -> dict[str, Any]:
        order = self._order(user, choice, "locked", "released")
        return {"user": user, "order": order} | self._payment(order, payment, ago)

    def _pay_directly(
        self, user: str, choice: int, payment: int, ago: int | None, cart: int, choices: list[int]
    ) -> dict[str, Any]:
        order = self._order(user, choice)
        asked = self._asked(user, order, cart, choices)
        return {"user": user, "order": order} | self._payment(order, payment, ago) | asked

    def _payment(self, order: str, payment: int, ago: int | None) -> dict[str, Any]:
        paid_at = None if ago is None else self.model.now - timedelta(seconds=ago)
        return {"payment": f"pay-{payment}-{order}", "paid_at": paid_at}

    def _asked(self, user: str, order: str, cart: int, choices: list[int]) -> dict[str, Any]:
        """An order that is there is every other time asked for as it is: the same cart, the same coupons."""
        known = self.model.orders.get((user, order))
        if known and choices[0] % 2:
            return {"cart": known.cart, "coupons": tuple(sorted(known.coupons))}
        return {"cart": CARTS[cart], "coupons": self.chosen(user, choices)}

    def _refund(self, user: str, choice: int, number: int, pieces: list[Any] | None) -> dict[str, Any]:
        order = self._order(user, choice, "redeemed")
        shared = "" if number == 2 else f"-{order}"
        return {"user": user, "order": order, "refund": f"ref-{number}{shared}"} | self._lines(user, order, pieces)

    def _unlock(self, user: str, choice: int, force: bool) -> dict[str, Any]:
        """One that is locked, if there is one and ``choice`` is below ``FITTING``; or any."""
        locked = [coupon.number for coupon in self.model.of_user(user) if coupon.status == "locked"]
        fits = bool(locked) and choice < FITTING
        coupon = locked[choice % len(locked)] if fits else self.chosen(user, [choice])[0]
        return {"user": user, "coupon": coupon, "force": force}

    def _lines(self, user: str, order: str, pieces: list[tuple[int, int]] | None) -> dict[str, Any]:
        if pieces is None:
            return {"lines": None}
        known = self.model.orders.get((user, order))
        cart = known.cart if known else CARTS[0]
        places = [(NO_LINE if place == NO_LINE else place % len(cart), quantity) for place, quantity in pieces]
        lines = [str(place) if place == NO_LINE else cart[place].line for place, _ in places]
        returned = tuple((line, quantity) for line, (_, quantity) in zip(lines, places, strict=True))
        return {"lines": returned if NO_LINE in dict(places) else tuple(dict(returned).items())}

    def _tell(
        self, kind: str, user: str, choice: int, ago: int, number: int, pieces: list[Any] | None
    ) -> dict[str, Any]:
        tick = next(self.numbers)
        fitting = {"paid": ["locked", "released"], "closed": ["locked", "redeemed"], "refunded": ["redeemed"]}
        order = self._order(user, min(9, choice + MORE_UNKNOWN), *fitting[kind])
        more: dict[str, Any] = {}
        if kind == "paid" and number:
            more = {"payment": f"pay-0-{order}"}
        if kind == "refunded":
            more = self._lines(user, order, pieces) | ({} if number else {"refund": f"ref-0-{order}"})
        return {
            "user": user,
            "event": f"e{tick}",
            "order": order,
            "kind": kind,
            "occurred_at": self.model.now - timedelta(seconds=ago, milliseconds=tick % 97),
            "more": more,
        }

    def _transfer(self, user: str, choice: int, to: str) -> dict[str, Any]:
        return {"user": user, "coupon": self.chosen(user, [choice])[0], "to": to, "becomes": next(self.numbers)}

    def chosen(self, user: str, choices: list[int]) -> tuple[int, ...]:
        """Coupons of the user, free ones first; or another user's, or nobody's."""
        own = [coupon.number for coupon in self.model.of_user(user)]
        others = [coupon.number for coupon in self.model.coupons.values() if coupon.owner != user]
        numbers = {
            UNKNOWN
            if choice == NOBODYS_COUPON
            else others[-1]
            if choice == OTHERS_COUPON or not own
            else own[choice % len(own)]
            for choice in choices
        }
        return tuple(sorted(numbers))
