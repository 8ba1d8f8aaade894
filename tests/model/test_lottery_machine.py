"""The real lottery against a small model: the same draws, drains, losses and ends, and the same answers and books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from coupon_workers.errors import Conflict
from coupon_workers.lottery.lottery_change import LotteryChange, PrizeChange, change_lottery
from coupon_workers.lottery.lottery_control import end_lottery, pause_lottery, resume_lottery
from coupon_workers.lottery.odds import pick
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.services import Services
from tests.support.lottery import OPERATOR, Fair, coupon_prize, open_lottery, thanks
from tests.support.machine import run_machine
from tests.support.sale import Sale, assert_sound, open_sale

STOCK = (2, 3, 4)
WEIGHTS = (300_000, 300_000, 400_000)
LIMIT = 4
USERS = st.sampled_from(("ann", "bob", "cid", "dan"))
REQUESTS = st.sampled_from(("r1", "r2", "r3", "r4", "r5", "r6"))


class LotteryMachine(RuleBasedStateMachine):
    """The model: what is left, who has drawn, what was told, and of that what is settled."""

    services: Services

    @initialize()
    def begin(self) -> None:
        """A lottery of two coupons and a thank-you; the template is its own."""
        number = self.services.next_id(0)
        self.sale: Sale = open_sale(self.services, template_id=number, total_quantity=200, per_user_limit=1)
        prizes = [coupon_prize(number, STOCK[0], WEIGHTS[0]), coupon_prize(number, STOCK[1], WEIGHTS[1], "other")]
        self.fair: Fair = open_lottery(self.services, [*prizes, thanks(WEIGHTS[2], STOCK[2])], per_user_limit=LIMIT)
        self.status, self.left = "open", list(STOCK)
        self.told: dict[tuple[str, str], int] = {}
        self.settled: set[tuple[str, str]] = set()

    @rule(user=USERS, request=REQUESTS, number=st.integers(0, 999_999))
    def draw(self, user: str, request: str, number: int) -> None:
        """A draw has the answer the model foresees."""
        decision = self.fair.draw(user, request, number)
        if (user, request) in self.told:
            assert (DrawOutcome.REPLAYED, self.told[user, request]) == (decision.outcome, decision.prize_no)
        elif self.status != "open":
            assert self.status.upper() == decision.outcome
        elif Counter(drawer for drawer, _ in self.told)[user] >= LIMIT:
            assert DrawOutcome.LIMIT_REACHED == decision.outcome
        else:
            prize_no = pick(WEIGHTS, number)
            won = prize_no if self.left[prize_no - 1] else 0
            assert (DrawOutcome.DRAWN, won) == (decision.outcome, decision.prize_no)
            if won:
                self.left[won - 1] -= 1
            self.told[user, request] = won

    @rule()
    def drain(self) -> None:
        """All that was told is in the books."""
        self.fair.drain()
        self.settled = set(self.told)

    @precondition(lambda self: self.status != "ended")
    @rule()
    def preheat(self) -> None:
        """A rebuild under way changes nothing."""
        self.fair.preheat()

    @precondition(lambda self: self.status != "ended")
    @rule()
    def lose_redis(self) -> None:
        """What was not settled is gone, as a claim would be; the rest is as it was."""
        self.services.redis.flushall()
        for request in set(self.told) - self.settled:
            if won := self.told.pop(request):
                self.left[won - 1] += 1
        self.fair.preheat()
        self.sale.preheat()

    @precondition(lambda self: self.status == "open")
    @rule()
    def pause(self) -> None:
        """Nobody draws."""
        pause_lottery(self.services, self.fair.lottery_id)
        self.status = "paused"

    @precondition(lambda self: self.status == "paused")
    @rule(prize_no=st.integers(1, 3), more=st.integers(-2, 2))
    def restock(self, prize_no: int, more: int) -> None:
        """More or fewer of a prize; never fewer than are drawn, settled or not."""
        stock = self.fair.prizes("stock")[prize_no - 1] + more
        change = LotteryChange(self.fair.books["version"], prizes=(PrizeChange(prize_no, stock=stock),))
        if self.left[prize_no - 1] + more < 0:
            with pytest.raises(Conflict, match="are drawn already"):
                change_lottery(self.services, self.fair.lottery_id, change)
        else:
            change_lottery(self.services, self.fair.lottery_id, change)
            self.left[prize_no - 1] += more

    @precondition(lambda self: self.status == "paused")
    @rule()
    def resume(self) -> None:
        """Draws go on."""
        resume_lottery(self.services, self.fair.lottery_id)
        self.status = "open"

    @precondition(lambda self: self.status != "ended" and len(self.told) > 6)
    @rule()
    def end(self) -> None:
        """What is left goes back when nothing waits."""
        end_lottery(self.services, self.fair.lottery_id, OPERATOR)
        self.drain()
        self.fair.sweep()
        self.status = "ended"
        assert ("ended", 0) == (self.fair.books["status"], self.sale.books["reserved_quantity"])

    @rule(user=USERS)
    def claim(self, user: str) -> None:
        """Claims of the template go on beside it."""
        self.sale.claim(user, f"claim-{user}")
        self.sale.drain()

    @invariant()
    def the_gate_has_left_what_the_model_has(self) -> None:
        """And settled draws are those that were told."""
        assert self.left == self.fair.stock
        assert {f"{user} {request}": (self.told[user, request], None) for user, request in self.settled} == (
            self.fair.draws()
        )

    def teardown(self) -> None:
        """Every invariant of the shop holds at the end."""
        if hasattr(self, "fair"):
            self.fair.drain()
            assert_sound(self.services)


@pytest.fixture
def machine(services: Services) -> Iterator[type[LotteryMachine]]:
    """The machine on this run's stores."""
    yield type("Machine", (LotteryMachine,), {"services": services})


def test_the_lottery_answers_as_its_model(machine: type[LotteryMachine]) -> None:
    """Whatever is done in whatever order."""
    run_machine(machine, examples=15, steps=30)
