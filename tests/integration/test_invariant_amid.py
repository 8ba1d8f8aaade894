"""The checker while operators and jobs work: what ends or goes amid its reading is no breach."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.checking import conservation, lottery_gate, patience, request_memory, taker_count
from coupon_workers.checking.breach import Breach
from coupon_workers.checking.gate_reading import hash_fields
from coupon_workers.checking.report import invariants
from coupon_workers.claiming.gate_retirement import retire_gates
from coupon_workers.risk.review_desk import approve, reject
from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.runtime.services import Services
from tests.support.crash import Crash, crash_at
from tests.support.lottery import FIRST, coupon_prize, open_lottery, thanks
from tests.support.risk import claim_from, risky_sale, rule
from tests.support.sale import assert_sound, open_sale

SWEPT_AFTER_S = 0.3
LONG_S = 20.0
FEW = 3


def untold_review(services: Services, monkeypatch: pytest.MonkeyPatch, decide: Callable[..., object]) -> None:
    """A review that has ended, of which the gate has not been told."""
    sale = risky_sale(services, rule("look", threshold=0, verdict="review"))
    claim_id = claim_from(sale, "ann", device="d1").claim_id
    sale.drain()
    with crash_at(monkeypatch, "review.after_commit"), pytest.raises(Crash):
        decide(services, claim_id, "key-1", "seen")


def memory_of_requests(services: Services, patience_s: float) -> list[Breach]:
    """What the rule of that name finds."""
    [found] = [rule for rule in invariants(patience_s) if rule.name == "request_memory"]
    return found.find(services)


@pytest.mark.parametrize("decide", [approve, reject])
def test_a_review_that_ends_while_the_check_reads_is_no_breach(
    services: Services, monkeypatch: pytest.MonkeyPatch, decide: Callable[..., object]
) -> None:
    """The gate is told after the database; one that is never told is a breach."""
    untold_review(services, monkeypatch, decide)
    sweep = threading.Timer(SWEPT_AFTER_S, sweep_risk, (services,))

    never_told = memory_of_requests(services, 0)
    sweep.start()
    told_soon = memory_of_requests(services, LONG_S)
    sweep.join()

    assert (1, []) == (len(never_told), told_soon)


@pytest.mark.parametrize("module", [request_memory, taker_count])
def test_a_gate_that_is_retired_while_the_check_reads_is_no_breach(
    services: Services, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    """Its coupons stay, and nobody is asked for them at the gate any more."""
    sale = open_sale(services)
    sale.claim_each(["ann", "bob"])
    sale.drain()
    pages = module.coupon_pages

    def retired_first(asked: Services) -> Iterator[list[Any]]:
        with services.engine.begin() as connection:
            connection.execute(text("UPDATE coupon_template SET status = 'archived'"))
        assert 1 == retire_gates(services)
        yield from pages(asked)

    monkeypatch.setattr(module, "coupon_pages", retired_first)

    assert_sound(services)


def test_no_patience_is_spent_on_a_cold_template(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its units are not judged: one look says so."""
    services.redis.delete(open_sale(services).keys.generation)
    looked: list[bool] = []

    def looks(patience_s: float) -> Iterator[bool]:
        for last in patience.looks(patience_s):
            looked.append(last)
            yield last

    monkeypatch.setattr(conservation, "looks", looks)

    assert [] == conservation.conservation(services, patience_s=SWEPT_AFTER_S)
    assert [False] == looked


def test_users_who_claim_meanwhile_crowd_out_no_breach(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few suspects are kept in mind: who has only moved is told from who is counted wrongly."""
    sale = open_sale(services, total_quantity=50, per_user_limit=None)
    users = [f"u{number}" for number in range(20)]
    sale.claim_each(users)
    sale.drain()

    def claimed_meanwhile(*asked: Any) -> Iterator[tuple[str, str, str]]:
        sale.claim_each(users, "r2")
        services.redis.hset(sale.keys.takers, "u7", "9 9")
        return hash_fields(*asked)

    monkeypatch.setattr(taker_count, "hash_fields", claimed_meanwhile)
    monkeypatch.setattr(taker_count, "MOST_SUSPECTS", FEW)

    found = taker_count.taker_count(services, patience_s=0)

    assert [("template 7001 user u7", "2 coupons and queued claims", "9")] == [
        (breach.subject, breach.expected, breach.actual) for breach in found
    ]


def test_a_lottery_of_which_all_is_forgotten_does_not_fill_the_memory(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more breaches are put together than are listed."""
    sale = open_sale(services, total_quantity=50)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 40, 500_000), thanks(500_000, stock=9)])
    fair.draw_each([f"u{number}" for number in range(20)], FIRST)
    fair.drain()
    services.redis.delete(fair.keys.requests, fair.keys.takers)
    made: list[Breach] = []

    def breach(*words: str) -> Breach:
        made.append(Breach(*words))
        return made[-1]

    monkeypatch.setattr(lottery_gate, "Breach", breach)
    monkeypatch.setattr(lottery_gate, "BREACH_LIMIT", FEW)

    found = lottery_gate.lottery_gate(services, patience_s=0)

    assert (FEW, FEW) == (len(found), len(made))
