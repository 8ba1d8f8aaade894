"""The sweep over batches of codes: generations that lost their message go on, what is over ends, missed uses count."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from coupon_workers.campaigns.batch_control import tell_gate
from coupon_workers.codes.code_batch import CodeBatchStatus
from coupon_workers.codes.code_batch_end import end_code_batch
from coupon_workers.codes.use_count import count_uses
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import generate_codes

FORGOTTEN = timedelta(seconds=15)
"""A generation that has not moved for so long has lost its message, or waits in a long queue: a message more does no
harm, as one worker has the batch."""

AT_ONCE = 200
OPERATOR = "expiry"

_FORGOTTEN = text(
    "SELECT code_batch_id FROM code_batch WHERE status = 'generating' AND updated_at < :before"
    " ORDER BY code_batch_id LIMIT :most"
)
_OVER = text(
    "SELECT b.code_batch_id, b.template_id FROM code_batch b JOIN coupon_template t USING (template_id)"
    " WHERE b.status IN ('generating', 'done') AND least(b.expires_at, t.claim_end) <= :now"
    " ORDER BY b.code_batch_id LIMIT :most"
)
_UNCOUNTED = text(
    """
    SELECT b.code_batch_id, b.used_count, t.template_id, t.timezone, t.per_user_daily_limit
      FROM code_batch b JOIN coupon_template t USING (template_id)
     WHERE b.gate_cursor < b.used_count ORDER BY b.code_batch_id LIMIT :most
    """
)
_COUNTED = text("UPDATE code_batch SET gate_cursor = :to WHERE code_batch_id = :code_batch_id AND gate_cursor < :to")


def sweep_codes(services: Services) -> dict[str, int]:
    """One pass. Returns how many batches were ``woken``, ``expired`` and ``counted``. Raises ``StoreUnavailable``."""
    return {"woken": _wake(services), "expired": _expire(services), "counted": _count(services)}


def _wake(services: Services) -> int:
    named = {"before": services.clock() - FORGOTTEN, "most": AT_ONCE}
    with transaction(services.engine) as connection:
        batches = connection.execute(_FORGOTTEN, named).all()
    for batch in batches:
        services.post.send(generate_codes(batch.code_batch_id))
    return len(batches)


def _expire(services: Services) -> int:
    now = services.clock()
    with transaction(services.engine) as connection:
        batches = connection.execute(_OVER, {"now": now, "most": AT_ONCE}).all()
    for batch in batches:
        with transaction(services.engine) as connection:
            end_code_batch(connection, batch.code_batch_id, CodeBatchStatus.EXPIRED, OPERATOR, now)
        tell_gate(services, batch.template_id)
    return len(batches)


def _count(services: Services) -> int:
    """Also of batches that have ended: their last uses may be those that were missed."""
    with transaction(services.engine) as connection:
        batches = connection.execute(_UNCOUNTED, {"most": AT_ONCE}).mappings().all()
    for batch in batches:
        count_uses(services, batch, batch["code_batch_id"], batch["used_count"])
        with transaction(services.engine) as connection:
            connection.execute(_COUNTED, {"code_batch_id": batch["code_batch_id"], "to": batch["used_count"]})
    return len(batches)
