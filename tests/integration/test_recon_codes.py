"""Codes are reconciled: each thing that can be wrong about them is found once, and nothing else is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.codes.code_sweep import sweep_codes
from coupon_workers.reconciliation.code_differences import code_differences
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import generate_codes
from coupon_workers.runtime.task import sweep_codes as sweep_codes_task
from tests.conftest import PostBox
from tests.support.code_batch import CodeDesk, hand_out_codes, plan_codes
from tests.support.recon_reading import found
from tests.support.reconciling import ReconDesk
from tests.support.sale import Sale, open_sale


@dataclass
class Scene:
    """Batches in every state, with codes used by four users."""

    sale: Sale
    done: CodeDesk
    begun: CodeDesk

    def sql(self, statement: str) -> None:
        """Change the database behind everyone's back; ``:done`` and ``:begun`` are batches."""
        named = {
            name: desk.code_batch_id
            for name, desk in (("done", self.done), ("begun", self.begun)) if f":{name}" in statement
        }  # fmt: skip
        with self.sale.services.engine.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text(statement), named)

    def found(self) -> list[str]:
        """The classes of what differs a little later."""
        as_of = datetime.now(UTC) + timedelta(minutes=1)
        return [each.finding_class for each in code_differences(self.sale.services, as_of, None).differences]


@pytest.fixture
def scene(services: Services) -> Scene:
    """One batch done, one revoked, one begun, one with its texts kept."""
    sale = open_sale(services, total_quantity=60)
    done, revoked, begun = hand_out_codes(sale, 10), hand_out_codes(sale, 10), plan_codes(sale, 5)
    plan_codes(sale, 5).generate(chunk=2)
    for number in range(3):
        done.exchange(done.codes[number], f"u-{number}")
    revoked.exchange(revoked.codes[0], "u-3")
    revoke_code_batch(services, revoked.code_batch_id, "key-1")
    sweep_codes(services)
    services.post.sent.clear()  # type: ignore[attr-defined]
    return Scene(sale, done, begun)


def test_sound_codes_do_not_differ(scene: Scene) -> None:
    """Nor do the stock, the state and the batches beside them."""
    assert ([], []) == (scene.found(), found(scene.sale.services))


BREAKS = {
    "stray_codes": "DELETE FROM code_batch WHERE code_batch_id = :begun;"
    " INSERT INTO code (code_batch_id, code_hash) VALUES (:begun, decode(repeat('ab', 16), 'hex'))",
    "code_counts_differ": "DELETE FROM code WHERE code_batch_id = :done AND ctid = (SELECT min(ctid) FROM code"
    " WHERE code_batch_id = :done AND use_no IS NULL)",
    "texts_differ": "INSERT INTO code_export_part VALUES (:done, 2, 'x')",
    "codes_not_ended": "UPDATE code_batch SET expires_at = now() - interval '1 hour' WHERE code_batch_id = :done",
    "generation_stuck": "UPDATE code_batch SET updated_at = now() - interval '1 hour' WHERE code_batch_id = :begun",
    "codes_uncounted": "UPDATE code_batch SET gate_cursor = 1, updated_at = now() - interval '1 hour'"
    " WHERE code_batch_id = :done",
    "code_without_coupon": "DELETE FROM coupon WHERE user_id = 'u-0'",
    "coupon_without_code": "UPDATE code_batch SET used_count = 2, gate_cursor = 2, left_quantity = 8"
    " WHERE code_batch_id = :done; UPDATE code SET use_no = NULL, user_id = NULL, request_id = NULL, coupon_id = NULL,"
    " used_at = NULL WHERE code_batch_id = :done AND use_no = 3",
    "code_and_coupon_differ": "UPDATE code SET user_id = 'somebody' WHERE code_batch_id = :done AND use_no = 1",
}


@pytest.mark.parametrize("finding_class", BREAKS)
def test_what_is_broken_is_found_and_nothing_else(scene: Scene, finding_class: str) -> None:
    """Twice the same."""
    for statement in BREAKS[finding_class].split(";"):
        scene.sql(statement)

    assert ([finding_class], [finding_class]) == (scene.found(), scene.found())


@pytest.mark.parametrize("finding_class", ["codes_not_ended", "generation_stuck", "codes_uncounted"])
def test_what_has_stopped_is_woken_by_itself(scene: Scene, post: PostBox, finding_class: str) -> None:
    """The message goes out again, and does what is left to do."""
    scene.sql(BREAKS[finding_class])
    desk = ReconDesk(scene.sale.services, datetime.now(UTC) + timedelta(minutes=1))

    [finding] = desk.reconcile(ReconKind.CODES)

    assert (finding_class, FindingState.REPAIRED) == (finding.finding_class, finding.state)
    expected = {sweep_codes_task()}
    if finding_class == "generation_stuck":
        expected.add(generate_codes(scene.begun.code_batch_id))
        scene.begun.generate()
    sweep_codes(scene.sale.services)
    assert expected == set(post.sent) & (expected | {sweep_codes_task()})
    assert [] == desk.later(minutes=1).reconcile(ReconKind.CODES)
