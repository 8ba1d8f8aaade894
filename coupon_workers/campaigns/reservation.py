"""A batch's units: set aside as a whole before the first is issued, and what is left given back once.

The books of the template lead: ``reserved_quantity`` moves with a new version of the template, which takes the units
from the gate's stock, or gives them back, once (``lua/sync_template.lua``).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, text

from coupon_workers.campaigns.batch import BatchPolicy, Row
from coupon_workers.claiming.gate_view import stock_of
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services

_ROOM = text(
    "SELECT total_quantity - issued_quantity - reserved_quantity AS room FROM coupon_template"
    " WHERE template_id = :template_id FOR NO KEY UPDATE"
)
_RESERVE = text(
    "UPDATE coupon_template SET reserved_quantity = reserved_quantity + :units, version = version + 1,"
    " updated_at = :now"
    " WHERE template_id = :template_id AND issued_quantity + reserved_quantity + :units <= total_quantity"
)
_START = text(
    "UPDATE issue_batch SET status = 'running', reserved_quantity = :units, left_quantity = :units,"
    " started_at = :now, updated_at = :now WHERE batch_id = :batch_id AND status = 'ready'"
)
_END = text(
    """
    WITH ended AS (
        UPDATE issue_batch b SET status = :status, reason = :reason, left_quantity = 0, finished_at = :now,
               updated_at = :now
          FROM (SELECT batch_id, left_quantity FROM issue_batch WHERE batch_id = :batch_id FOR NO KEY UPDATE) AS held
         WHERE b.batch_id = held.batch_id AND b.status IN ('staging', 'ready', 'running', 'paused')
        RETURNING b.batch_id, b.template_id, b.issued_count, b.refused_count, held.left_quantity AS units
    ), given_back AS (
        UPDATE coupon_template t SET reserved_quantity = reserved_quantity - ended.units, version = version + 1,
               updated_at = :now
          FROM ended WHERE t.template_id = ended.template_id AND ended.units > 0
        RETURNING 1
    ), told AS (
        INSERT INTO outbox (event, user_id, template_id, coupon_id, detail, created_at)
        SELECT 'batch.finished', '', template_id, batch_id,
               jsonb_build_object('batch_no', batch_id::text, 'status', CAST(:status AS text),
                                  'issued', issued_count, 'refused', refused_count),
               :now
          FROM ended
    ), file AS (
        DELETE FROM audience_file WHERE batch_id IN (SELECT batch_id FROM ended)
    )
    SELECT (SELECT count(*) FROM ended) AS ended, (SELECT count(*) FROM given_back) AS given_back
    """
)


def reserve(services: Services, connection: Connection, batch: Row, now: datetime) -> str | None:
    """Set units aside for the batch, which this transaction holds, and let it run; or why it cannot.

    ``all_or_nothing``: one for each user, or none. ``best_effort``: as many as there are. Claims that are queued have
    their units already: the gate's stock tells, where it is warm. The caller brings the new version to the gate.
    """
    wanted, template_id = batch["audience_count"], batch["template_id"]
    units = min(wanted, free_units(services, connection, template_id))
    if units == 0 or (units < wanted and batch["policy"] == BatchPolicy.ALL_OR_NOTHING):
        return f"NOT_ENOUGH_STOCK: {wanted} users, {units} units"
    named = {"template_id": template_id, "units": units, "now": now, "batch_id": batch["batch_id"]}
    if connection.execute(_RESERVE, named).rowcount != 1 or connection.execute(_START, named).rowcount != 1:
        raise AssertionError("the template or the batch changed while it was held")
    return None


def free_units(services: Services, connection: Connection, template_id: int, given_back: int = 0) -> int:
    """How many units may be set aside of the template, which this transaction holds from here on.

    ``given_back``: units that this transaction has given back, of which the gate does not know.
    """
    room: int = connection.execute(_ROOM, {"template_id": template_id}).scalar_one()
    return max(0, min(room, _gate_stock(services, template_id, room) + given_back))


def _gate_stock(services: Services, template_id: int, room: int) -> int:
    try:
        gate = stock_of(services, [template_id])[template_id]
    except StoreUnavailable:
        return room
    return gate.remaining if gate.warmed else room


def end_batch(connection: Connection, batch_id: int, status: str, reason: str | None, now: datetime) -> bool:
    """End an open batch and give back what is left of its units, once; whether the template's books have changed.

    Raises nothing for a batch that has ended before: nothing is written then.
    """
    named = {"batch_id": batch_id, "status": status, "reason": reason, "now": now}
    return bool(connection.execute(_END, named).one().given_back)
