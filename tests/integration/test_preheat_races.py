"""A preheat and whatever may come between its steps: pauses, other preheats, a session that is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from coupon_workers.claiming import claim_batch, preheat
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settle_sql import settle_lock
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import pause_template, resume_template
from tests.support.sale import Sale, assert_sound, open_sale


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units, one a user."""
    return open_sale(services, per_user_limit=1)


def meanwhile(monkeypatch: pytest.MonkeyPatch, module: object, point: str, act: Callable[[], object]) -> None:
    """Do something at a named point of the code, once."""
    left = [act]

    def crash_point(name: str) -> None:
        if name == point and left:
            left.pop()()

    monkeypatch.setattr(module, "crash_point", crash_point)


def test_a_pause_answered_during_the_preheat_of_a_cold_template_holds(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate was told while cold; a build from before must not open it."""
    sale.services.redis.flushall()
    meanwhile(monkeypatch, preheat, "preheat.before_swap", lambda: pause_template(sale.services, sale.template_id))

    sale.preheat()

    assert ClaimOutcome.PAUSED is sale.claim("ann").outcome


def test_a_pause_and_resume_during_the_preheat_leave_the_template_open_for_good(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is claimed afterwards is issued: the gate knows the newest epoch."""
    sale.services.redis.flushall()

    def pause_and_resume() -> None:
        pause_template(sale.services, sale.template_id)
        resume_template(sale.services, sale.template_id)

    meanwhile(monkeypatch, preheat, "preheat.before_swap", pause_and_resume)
    sale.preheat()

    claim_id = sale.claim("ann").claim_id
    sale.drain()

    assert {claim_id: "ann"} == sale.coupons()
    assert {} == sale.rejections()


def test_claims_read_before_a_pause_and_written_after_it_are_rejected(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a pause is answered nothing that was queued is issued any more, wherever its settling stood."""
    claim_ids = sale.claim_each(["ann", "bob"])
    meanwhile(monkeypatch, claim_batch, "settle.before_insert", lambda: pause_template(sale.services, sale.template_id))

    sale.drain()

    assert dict.fromkeys(claim_ids, "PAUSED") == sale.rejections()
    assert 10 == sale.stock
    assert_sound(sale.services)


def test_a_preheat_leaves_the_work_to_another_that_is_at_it(sale: Sale) -> None:
    """Those that wait behind one another would hold every worker and do the same again."""
    turn = {"turn": ~settle_lock(sale.template_id, 0)}
    with sale.services.engine.begin() as other:
        other.execute(text("SELECT pg_advisory_xact_lock(:turn)"), turn)
        before = sale.services.redis.get(sale.keys.generation)

        loaded = preheat_template(sale.services, sale.template_id, wait=False)

    assert 0 == loaded
    assert before == sale.services.redis.get(sale.keys.generation)


def test_a_preheat_whose_session_is_lost_before_the_swap_does_not_swap(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its locks went with the session: what others settled meanwhile it has not seen."""
    sale.claim("ann")
    sale.drain()
    before = sale.services.redis.get(sale.keys.generation)

    def end_the_session() -> None:
        with sale.services.engine.connect() as other:
            other.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
                    " AND pid <> pg_backend_pid()"
                )
            )

    meanwhile(monkeypatch, preheat, "preheat.before_swap", end_the_session)

    with pytest.raises(StoreUnavailable):
        sale.preheat()

    assert before == sale.services.redis.get(sale.keys.generation)
    assert [] == sale.services.redis.keys("*shadow*")
    assert_sound(sale.services)


def test_a_long_backlog_is_settled_before_the_swap(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """The swap goes through what pends while Redis stands still."""
    monkeypatch.setattr(preheat, "SMALL_BACKLOG", 1)
    sale.claim_each(["ann", "bob", "cat"])
    pending: list[int] = []
    meanwhile(monkeypatch, preheat, "preheat.before_swap", lambda: pending.append(sale.queued))

    sale.preheat()

    assert [0] == pending
    assert 3 == len(sale.coupons())
