"""The checker bites on batches: their books are broken on purpose, and exactly what was broken is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from sqlalchemy import text

from coupon_workers.campaigns.batch_control import cancel_batch, pause_batch
from coupon_workers.checking.report import check_all
from coupon_workers.runtime.services import Services
from tests.support.campaign import Campaign, plan_campaign
from tests.support.sale import Sale, open_sale

USERS = [f"u{number}" for number in range(8)]
BRIEFLY_S = 0.3


@dataclass
class Scene:
    """Batches in every state: done with a refusal, running, paused, cancelled, ready, failed."""

    sale: Sale
    batches: dict[str, Campaign]

    def sql(self, statement: str) -> Scene:
        """Change the database behind everyone's back; batches by their states: ``:done``. The scene, for what comes
        next."""
        named = {name: batch.batch_id for name, batch in self.batches.items() if f":{name}" in statement}
        with self.sale.services.engine.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text(statement), named)
        return self

    def broken(self) -> set[str]:
        """The names of the invariants that do not hold."""
        return {breach.invariant for breach in check_all(self.sale.services, patience_s=BRIEFLY_S).breaches}


@pytest.fixture
def scene(services: Services) -> Scene:
    """One batch of each kind, of one template of fifty units."""
    sale = open_sale(services, total_quantity=50, per_user_limit=4)
    sale.claim_each(["u1"], "r1")
    sale.claim_each(["u1"], "r2")
    sale.claim_each(["u1"], "r3")
    sale.claim_each(["u1"], "r4")
    sale.drain()
    batches = {name: plan_campaign(sale, USERS) for name in ("done", "running", "paused", "cancelled", "ready")}
    batches["failed"] = plan_campaign(sale, [f"v{number}" for number in range(60)])
    for name in ("running", "paused", "cancelled"):
        batches[name].start()
        batches[name].work(most=1)
        sale.services.post.sent.clear()  # type: ignore[attr-defined]
    batches["done"].start()
    batches["done"].work()
    batches["failed"].start()
    pause_batch(services, batches["paused"].batch_id, "key-2")
    cancel_batch(services, batches["cancelled"].batch_id, "key-2")
    return Scene(sale, batches)


def test_batches_in_every_state_break_no_rule(scene: Scene) -> None:
    """And are counted among the facts."""
    report = check_all(scene.sale.services, patience_s=BRIEFLY_S)

    statuses = {name: batch.books["status"] for name, batch in scene.batches.items()}
    assert {name: name for name in scene.batches} == statuses
    assert 1 == scene.batches["done"].books["refused_count"]
    assert report.holds, report.breaches
    assert (6, 3) == (report.facts["batches"], report.facts["open_batches"])


BREAKS: dict[str, tuple[Callable[[Scene], object], set[str]]] = {
    "a coupon of a batch lost, with its history": (
        lambda s: (
            s.sql(
                "DELETE FROM coupon_flow USING coupon c WHERE c.coupon_id = coupon_flow.coupon_id"
                " AND c.batch_no = CAST(:running AS text)"
            ),
            s.sql("DELETE FROM coupon WHERE batch_no = CAST(:running AS text)"),
        ),
        {"batch_books", "issued_count", "conservation", "taker_count"},
    ),
    "a coupon that was put under another batch": (
        lambda s: s.sql(
            "UPDATE coupon SET batch_no = CAST(:ready AS text) WHERE batch_no = CAST(:done AS text) AND user_id = 'u0'"
        ),
        {"batch_books"},
    ),
    "a coupon of a batch that is none": (
        lambda s: s.sql("UPDATE coupon SET batch_no = '4711' WHERE batch_no = CAST(:done AS text)"),
        {"batch_books"},
    ),
    "a claim that calls itself a batch's": (
        lambda s: s.sql("UPDATE coupon SET source = 'batch' WHERE request_id = 'r1'"),
        {"batch_books"},
    ),
    "a refusal lost": (lambda s: s.sql("DELETE FROM batch_failure WHERE batch_id = :done"), {"batch_books"}),
    "a refusal too many": (
        lambda s: s.sql(
            "INSERT INTO batch_failure (batch_id, row_no, value, reason) VALUES (:running, 9, 'x', 'SOLD_OUT')"
        ),
        {"batch_books"},
    ),
    "a shard that went back": (
        lambda s: s.sql("UPDATE issue_shard SET cursor = 0, gate_cursor = 0 WHERE batch_id = :running AND shard = 0"),
        {"batch_books"},
    ),
    "a shard that went ahead": (
        lambda s: s.sql("UPDATE issue_shard SET cursor = member_count WHERE batch_id = :running"),
        {"batch_books"},
    ),
    "a shard lost": (lambda s: s.sql("DELETE FROM issue_shard WHERE batch_id = :ready AND shard = 0"), {"batch_books"}),
    "a batch that keeps less than it should": (
        lambda s: s.sql("UPDATE issue_batch SET left_quantity = left_quantity - 1 WHERE batch_id = :paused"),
        {"batch_books"},
    ),
    "a count of issued coupons moved": (
        lambda s: s.sql("UPDATE issue_batch SET issued_count = issued_count - 1 WHERE batch_id = :cancelled"),
        {"batch_books"},
    ),
    "a template that keeps what no batch has": (
        lambda s: s.sql("UPDATE coupon_template SET reserved_quantity = reserved_quantity + 1"),
        {"batch_books", "conservation"},
    ),
    "a template that has given what no batch gave": (
        lambda s: s.sql("UPDATE coupon_template SET granted_quantity = granted_quantity - 1"),
        {"batch_books"},
    ),
    "a gate that forgot whom a batch gave": (
        lambda s: s.sale.services.redis.hdel(s.sale.keys.takers, "u0"),
        {"taker_count"},
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_is_broken_on_purpose_is_reported_and_nothing_else(scene: Scene, name: str) -> None:
    """One rule for one break, or the few that the break breaks."""
    break_it, rules = BREAKS[name]

    break_it(scene)

    assert rules == scene.broken()
