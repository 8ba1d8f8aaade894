"""The checker bites on lotteries: their books and gates are broken on purpose, and what was broken is reported."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from sqlalchemy import text

from coupon_workers.checking.report import check_all
from coupon_workers.lottery.lottery_control import end_lottery
from coupon_workers.runtime.services import Services
from tests.support.lottery import FIRST, OPERATOR, Fair, coupon_prize, open_lottery, thanks
from tests.support.sale import Sale, open_sale

BRIEFLY_S = 0.3


@dataclass
class Scene:
    """A lottery that runs, with draws settled and queued, and one that has ended."""

    sale: Sale
    fair: Fair

    def sql(self, statement: str) -> None:
        """Change the database behind everyone's back."""
        with self.sale.services.engine.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            named = {"id": self.fair.lottery_id} if ":id" in statement else {}
            connection.execute(text(statement), named)

    def broken(self) -> set[str]:
        """The names of the invariants that do not hold."""
        return {breach.invariant for breach in check_all(self.sale.services, patience_s=BRIEFLY_S).breaches}


@pytest.fixture
def scene(services: Services) -> Scene:
    """Of one template of thirty units."""
    sale = open_sale(services, total_quantity=30)
    prizes = [coupon_prize(sale.template_id, 5, 500_000), thanks(500_000, stock=9)]
    fair, ended = (open_lottery(services, prizes, per_user_limit=2, per_user_daily_limit=2) for _ in range(2))
    for each in (fair, ended):
        each.draw_each(["ann", "bob"], FIRST)
        each.draw_each(["cid"], 900_000)
        each.drain()
    end_lottery(services, ended.lottery_id, OPERATOR)
    fair.draw("dan", number=FIRST)
    return Scene(sale, fair)


def test_lotteries_in_every_state_break_no_rule(scene: Scene) -> None:
    """And are counted among the facts."""
    report = check_all(scene.sale.services, patience_s=BRIEFLY_S)

    assert report.holds, report.breaches
    assert (2, 6) == (report.facts["lotteries"], report.facts["draws"])


BOOKS, UNITS, GATE = "lottery_books", "batch_books", "lottery_gate"
OF_ANN = "lottery_id = :id AND user_id = 'ann'"
BREAKS: dict[str, tuple[str, set[str]]] = {
    "a draw too many is counted": (
        "UPDATE prize SET drawn_count = drawn_count + 1, left_quantity = left_quantity - 1"
        " WHERE lottery_id = :id AND prize_no = 2",
        {BOOKS, GATE},
    ),
    "a prize has lost its units": (
        "UPDATE prize SET left_quantity = 0 WHERE lottery_id = :id AND prize_no = 1",
        {BOOKS, UNITS, GATE},
    ),
    "a reservation is forgotten": ("UPDATE coupon_template SET reserved_quantity = reserved_quantity - 1", {UNITS}),
    "what was given is counted wrongly": (
        "UPDATE coupon_template SET granted_quantity = granted_quantity - 1",
        {UNITS},
    ),
    "a draw is counted twice": ("UPDATE lottery SET draw_count = draw_count + 1 WHERE lottery_id = :id", {BOOKS}),
    "weights are no million": ("UPDATE prize SET weight = 1 WHERE lottery_id = :id AND prize_no = 1", {BOOKS}),
    "a winning draw has no coupon": (f"UPDATE draw SET coupon_id = NULL WHERE {OF_ANN}", {BOOKS}),
    "a coupon is another draw's": ("UPDATE coupon SET user_id = 'eve' WHERE user_id = 'ann'", {BOOKS}),
    "a coupon is of no draw": (f"DELETE FROM draw WHERE {OF_ANN}", {BOOKS, GATE}),
}


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_a_broken_book_is_found(scene: Scene, name: str) -> None:
    """By the invariants it breaks; a coupon that was moved breaks its history too."""
    statement, expected = BREAKS[name]

    scene.sql(statement)

    assert expected <= scene.broken()


def test_users_beyond_their_limits_are_found(scene: Scene) -> None:
    """In all, and on a day."""
    scene.sql("UPDATE draw SET user_id = 'ann', request_id = draw_id::text WHERE lottery_id = :id")

    breaches = check_all(scene.sale.services, patience_s=BRIEFLY_S).breaches

    assert any(each.invariant == BOOKS and "at most 2 draws" == each.expected for each in breaches)


@pytest.mark.parametrize("part", ["stock", "takers", "requests"])
def test_a_gate_that_differs_is_found(scene: Scene, part: str) -> None:
    """A prize too many, a user counted wrongly, a request forgotten."""
    redis, keys = scene.sale.services.redis, scene.fair.keys
    if part == "stock":
        redis.hincrby(keys.stock, "1", 1)
    elif part == "takers":
        redis.hincrby(keys.takers, "ann", 1)
    else:
        redis.hdel(keys.requests, "ann r1")

    assert {GATE} == scene.broken()
