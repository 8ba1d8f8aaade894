"""Lotteries under load and after losses: the last prize, the odds of the script, Redis emptied or older."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import sqrt

from coupon_workers.lottery.odds import WEIGHTS, pick
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.services import Services
from tests.support.lottery import FIRST, coupon_prize, open_lottery, thanks
from tests.support.redis_dump import restore, snapshot
from tests.support.sale import assert_sound, open_sale


def test_of_a_thousand_draws_of_the_last_prize_exactly_one_wins(services: Services) -> None:
    """And one coupon is issued, though drains run beside one another."""
    sale = open_sale(services, total_quantity=5)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 1)])

    with ThreadPoolExecutor(16) as crowd:
        drawn = list(crowd.map(lambda number: fair.draw(f"u{number}", number=FIRST), range(1_000)))
        list(crowd.map(lambda _: fair.drain(), range(8)))
    fair.drain()

    assert {DrawOutcome.DRAWN} == {decision.outcome for decision in drawn}
    assert [1] == [decision.prize_no for decision in drawn if decision.prize_no]
    assert (1, [0]) == (len(sale.coupons()), fair.stock)
    assert (1_000, 999) == (fair.books["draw_count"], fair.books["none_count"])
    assert_sound(services)


def test_parallel_draws_of_one_user_keep_to_his_limit(services: Services) -> None:
    """Eight at once, five allowed; and one request at once is one draw."""
    fair = open_lottery(services, [thanks()], per_user_limit=5)

    with ThreadPoolExecutor(8) as crowd:
        many = list(crowd.map(lambda number: fair.draw("ann", f"r{number}").outcome, range(40)))
        same = list(crowd.map(lambda _: fair.draw("bob"), range(40)))

    assert 5 == many.count(DrawOutcome.DRAWN)
    assert 1 == len({decision.draw_id for decision in same})
    assert 1 == [decision.outcome for decision in same].count(DrawOutcome.DRAWN)


def test_the_script_draws_as_the_weights_say(services: Services) -> None:
    """Twenty thousand draws: each number wins what ``pick`` says, and each prize comes within four standard
    deviations."""
    prizes = [thanks(weight) for weight in (1_000, 99_000, 400_000, 500_000)]
    weights = [prize.weight for prize in prizes]
    fair = open_lottery(services, prizes)
    draws = 20_000

    edges = {number: fair.draw(f"e{number}", number=number).prize_no for number in (0, 999, 1_000, 99_999, 100_000)}
    fair.draws_by_chance(draws)
    drawn = fair.pending_prizes()

    assert {number: pick(weights, number) for number in edges} == edges
    for prize_no, weight in enumerate(weights, start=1):
        expected = draws * weight / WEIGHTS
        assert abs(drawn[prize_no] - expected) <= 4 * sqrt(expected * (1 - weight / WEIGHTS)) + len(edges), prize_no


def test_redis_emptied_amid_traffic_is_rebuilt_exactly(services: Services) -> None:
    """What was settled stays as it was told; the gate agrees with the books, and goes on."""
    sale = open_sale(services, total_quantity=100)
    prizes = [coupon_prize(sale.template_id, 40, 500_000), thanks(500_000)]
    fair = open_lottery(services, prizes, per_user_limit=3)
    told = {}
    for number in range(60):
        told[f"u{number % 25}", number] = fair.draw(f"u{number % 25}", f"r{number}")
        if number == 40:
            fair.drain()
        if number == 50:
            services.redis.flushall()
            assert DrawOutcome.NOT_WARMED == fair.draw("eve").outcome
            fair.sweep()
            fair.preheat()
            sale.preheat()
    fair.drain()

    settled = fair.draws()
    for (user, number), decision in told.items():
        if decision.outcome is DrawOutcome.DRAWN and not 40 < number <= 50:
            assert (decision.prize_no, None) == settled[f"{user} r{number}"]
    assert {reason for _, reason in settled.values()} == {None}
    assert_sound(services)


def test_redis_older_than_the_books_gives_nothing_twice(services: Services) -> None:
    """Draws that it lets through twice are written with their reasons, and the gate is cold until it is rebuilt."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 2)], per_user_limit=1)
    older = snapshot(services.redis)
    fair.draw_each(["ann", "bob"])
    fair.drain()

    restore(services.redis, older)
    again = fair.draw("ann")
    surplus = fair.draw("cid")
    fair.drain()
    cold = fair.draw("dan").outcome
    fair.preheat()

    assert (1, 1) == (again.prize_no, surplus.prize_no)
    assert [("DUPLICATE",), ("SOLD_OUT",)] == sorted(
        fair.rows("SELECT reason FROM draw WHERE lottery_id = :lottery_id AND reason IS NOT NULL")
    )
    assert DrawOutcome.NOT_WARMED == cold
    assert (DrawOutcome.REPLAYED, "settled") == fair.draw("ann")[0:6:5]
    assert "SOLD_OUT" == fair.draw("cid").state
    assert 0 == fair.draw("dan").prize_no
    fair.drain()
    assert 2 == len(sale.coupons())
    sale.preheat()
    assert_sound(services)
