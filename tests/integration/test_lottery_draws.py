"""Draws on real stores: decided at the gate, settled with their coupons, counted in every book."""

from __future__ import annotations

from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.services import Services
from tests.support.lottery import FIRST, coupon_prize, open_lottery, thanks
from tests.support.sale import assert_sound, open_sale


def test_a_draw_that_wins_a_coupon_is_settled_with_it(services: Services) -> None:
    """The draw's number is the coupon's, its unit comes out of those set aside."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 3)])
    assert (3, 7) == (sale.books["reserved_quantity"], sale.stock)

    drawn = fair.draw("ann")
    fair.drain()

    assert (DrawOutcome.DRAWN, 1, "20 off") == (drawn.outcome, drawn.prize_no, drawn.prize_name)
    assert {drawn.draw_id: "ann"} == sale.coupons()
    books = sale.books
    assert (1, 2, 1) == (books["issued_quantity"], books["reserved_quantity"], books["granted_quantity"])
    assert ([2], [1], [2]) == (fair.stock, fair.prizes("drawn_count"), fair.prizes("left_quantity"))
    assert {"ann r1": (1, None)} == fair.draws()
    assert_sound(services)


def test_the_same_request_has_the_same_prize(services: Services) -> None:
    """Before and after it is settled, and after Redis was emptied; another user's is another request."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 3, 500_000), thanks(500_000)])
    first = fair.draw("ann", number=FIRST)

    queued = fair.draw("ann", number=900_000)
    fair.drain()
    settled = fair.draw("ann", number=900_000)
    services.redis.flushall()
    fair.preheat()
    rebuilt = fair.draw("ann", number=900_000)
    other = fair.draw("bob", number=900_000)

    assert {DrawOutcome.REPLAYED} == {queued.outcome, settled.outcome, rebuilt.outcome}
    assert ["queued", "settled", "settled"] == [queued.state, settled.state, rebuilt.state]
    assert {(first.draw_id, 1, "20 off", sale.template_id)} == {each[1:5] for each in (queued, settled, rebuilt)}
    assert (DrawOutcome.DRAWN, 2) == (other.outcome, other.prize_no)


def test_a_prize_that_is_used_up_falls_to_none(services: Services) -> None:
    """Its number goes on to be drawn and wins nothing; the stock stays at nought."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 2)])

    drawn = fair.draw_each(["ann", "bob", "cid", "dan"])
    fair.drain()

    assert [1, 1, 0, 0] == [decision.prize_no for decision in drawn]
    assert ([0], 2) == (fair.stock, len(sale.coupons()))
    assert (4, 2, 0) == tuple(fair.books[name] for name in ("draw_count", "none_count", "rejected_count"))
    assert_sound(services)


def test_a_prize_is_not_counted_against_the_limit_of_claims(services: Services) -> None:
    """Whoever has won may claim as many as everybody, and whoever has claimed may win; also after a rebuild."""
    sale = open_sale(services, total_quantity=10, per_user_limit=1, per_user_daily_limit=1)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 5)])
    fair.draw("ann")
    fair.draw("ann", "r2")
    fair.drain()
    sale.preheat()

    first, second = sale.claim("ann"), sale.claim("ann", "r2")
    sale.drain()

    assert (ClaimOutcome.ACCEPTED, ClaimOutcome.LIMIT_REACHED) == (first.outcome, second.outcome)
    assert (3, 1) == (len(sale.coupons()), fair.coupons()["ann"] - 1)
    assert (4, {}) == (sale.stock, sale.rejections())
    assert_sound(services)


def test_limits_of_users_hold(services: Services) -> None:
    """In all, and on each local day."""
    fair = open_lottery(services, [thanks()], per_user_limit=3, per_user_daily_limit=2)

    outcomes = [fair.draw("ann", f"r{number}").outcome for number in range(3)]
    fair.drain()
    services.redis.flushall()
    fair.preheat()
    again = fair.draw("ann", "r4").outcome
    other = fair.draw("bob").outcome

    assert [DrawOutcome.DRAWN, DrawOutcome.DRAWN, DrawOutcome.DAILY_LIMIT_REACHED] == outcomes
    assert (DrawOutcome.DAILY_LIMIT_REACHED, DrawOutcome.DRAWN) == (again, other)


def test_a_rebuilt_gate_is_as_it_was(services: Services) -> None:
    """Stock, users' counts, days and requests, exactly."""
    sale = open_sale(services, total_quantity=20)
    prizes = [coupon_prize(sale.template_id, 5, 400_000), thanks(600_000)]
    fair = open_lottery(services, prizes, per_user_daily_limit=50)
    for number in range(40):
        fair.draw(f"u{number % 7}", f"r{number}")
    fair.drain()
    before = fair.gate()

    services.redis.flushall()
    loaded = fair.preheat()

    assert 40 == loaded
    assert before == fair.gate()


def test_a_preheat_counts_in_what_is_pending(services: Services) -> None:
    """A draw that waits has its prize, its user and its request, whether the rebuild comes before its settling."""
    sale = open_sale(services, total_quantity=20)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 5)], per_user_daily_limit=5)
    fair.draw_each(["ann", "bob"])
    fair.drain()
    fair.draw("ann", "r2")
    before = fair.gate()

    fair.preheat()

    assert before == fair.gate()
    assert 1 == fair.drain()
    assert [2] == fair.prizes("left_quantity")
