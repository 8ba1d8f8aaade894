"""The sweep: what a kill or a lost message has left hanging is taken up again (DESIGN 6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from coupon_workers.claiming import gate_sweep
from coupon_workers.claiming.gate_pulse import FORGOTTEN_MS, MANY_BELLS
from coupon_workers.claiming.gate_sweep import sweep_gates
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.pending import BELL_TTL_MS
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import preheat_template, settle_claims
from tests.conftest import PostBox
from tests.support.sale import Sale, open_sale
from tests.support.template import change_template, insert_template

NOTHING = {"rung": 0, "preheated": 0, "synced": 0}


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units."""
    return open_sale(services)


def test_gates_in_order_are_left_alone(sale: Sale, post: PostBox) -> None:
    """A claim whose bell is out is somebody's work already."""
    sale.claim("ann")

    assert (NOTHING, []) == (sweep_gates(sale.services), post.sent)


def test_a_forgotten_bell_is_rung_once(sale: Sale, post: PostBox) -> None:
    """The message was lost and its mark has expired; the next sweep finds the bell out."""
    sale.claim("ann")
    sale.services.redis.delete(sale.keys.bell)

    first, second = sweep_gates(sale.services), sweep_gates(sale.services)

    assert (NOTHING | {"rung": 1}, NOTHING) == (first, second)
    assert [settle_claims(sale.template_id, 0)] == post.sent
    assert 0 < sale.services.redis.pttl(sale.keys.bell) <= BELL_TTL_MS


@pytest.mark.parametrize("status", ["paused", "offline", "ended"])
def test_claims_pending_in_a_stopped_template_are_rung_for(sale: Sale, post: PostBox, status: str) -> None:
    """They wait to be rejected, or issued."""
    sale.claim("ann")
    sale.services.redis.delete(sale.keys.bell)
    change_template(sale.services.engine, sale.template_id, status=status)

    assert 1 == sweep_gates(sale.services)["rung"]


def test_a_cold_template_is_sent_to_be_preheated(services: Services, post: PostBox) -> None:
    """Published while Redis was away, or lost with it; every sweep asks again until it is warm."""
    insert_template(services.engine)

    first, second = sweep_gates(services), sweep_gates(services)
    services.redis.delete(BucketKeys(7_001).mending)
    later = sweep_gates(services)

    assert [NOTHING | {"preheated": 1}, NOTHING, NOTHING | {"preheated": 1}] == [first, second, later]
    assert [preheat_template(7_001)] * 2 == post.sent


def test_a_change_that_did_not_arrive_is_brought(sale: Sale) -> None:
    """The process died between its commit and the telling."""
    change_template(sale.services.engine, sale.template_id, status="paused", total_quantity=12)

    first, second = sweep_gates(sale.services), sweep_gates(sale.services)

    assert (NOTHING | {"synced": 1}, NOTHING) == (first, second)
    assert (ClaimOutcome.PAUSED, 12) == (sale.claim("ann").outcome, sale.stock)


@pytest.mark.parametrize("status", ["draft", "pending_approval", "archived"])
def test_a_template_without_a_gate_is_not_swept(services: Services, status: str) -> None:
    """It was never published, or is put away."""
    insert_template(services.engine, status=status)

    assert NOTHING == sweep_gates(services)


@pytest.mark.parametrize(("days_ago", "preheated"), [(1, 1), (6, 1), (8, 0)])
def test_a_template_stays_warm_for_a_week_after_its_end(services: Services, days_ago: int, preheated: int) -> None:
    """So that late replays are answered from Redis."""
    now = services.clock()
    insert_template(services.engine, claim_start=now - timedelta(days=30), claim_end=now - timedelta(days=days_ago))

    assert preheated == sweep_gates(services)["preheated"]


def test_more_templates_than_a_page_are_all_swept(
    services: Services, post: PostBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page by page, in the order of their ids."""
    monkeypatch.setattr(gate_sweep, "CHUNK", 2)
    for number in range(5):
        insert_template(services.engine, template_id=100 + number)

    assert 5 == sweep_gates(services)["preheated"]
    assert [preheat_template(100 + number) for number in range(5)] == post.sent


def _make_wait(sale: Sale, waited_ms: int) -> None:
    """Put what is pending there again as if it had been accepted ``waited_ms`` earlier."""
    client = sale.services.redis
    entries: Any = client.xrange(sale.keys.pending)
    seconds, micros = client.time()
    client.delete(sale.keys.pending)
    for number, (_, fields) in enumerate(entries):
        client.xadd(sale.keys.pending, fields, id=f"{seconds * 1000 + micros // 1000 - waited_ms}-{number}")


def test_claims_that_wait_behind_a_bell_nobody_heard_are_rung_for(sale: Sale, post: PostBox) -> None:
    """The mark says rung and the message was lost: the time that the oldest claim has waited tells."""
    sale.claim("ann")

    early = sweep_gates(sale.services)
    _make_wait(sale, FORGOTTEN_MS + 100)
    late = sweep_gates(sale.services)

    assert (NOTHING, NOTHING | {"rung": 1}) == (early, late)
    assert [settle_claims(sale.template_id, 0)] == post.sent


def test_no_bell_is_added_to_many_that_wait(sale: Sale, post: PostBox) -> None:
    """The workers are behind, not deaf: another bell would only make the queue longer."""
    sale.claim("ann")
    _make_wait(sale, FORGOTTEN_MS + 100)

    done = sweep_gates(sale.services, waiting_bells=MANY_BELLS)

    assert NOTHING == done
    assert [] == post.sent


def test_a_bell_that_comes_late_does_not_ask_the_database(sale: Sale) -> None:
    """An earlier bell's drain took everything: thousands of such bells must cost next to nothing."""
    sale.claim("ann")
    sale.drain()
    asked: list[str] = []

    def note(*given: object) -> None:
        asked.append(str(given[2]))

    event.listen(sale.services.engine, "before_cursor_execute", note)
    settled = sale.drain()
    event.remove(sale.services.engine, "before_cursor_execute", note)

    assert (0, []) == (settled, asked)
