"""Repairs of a template: its counters set to what its rows are, its gate rebuilt, its drain woken (DESIGN 10).

Each is done in the transaction that ends its finding, and may be done twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.claiming.gate_view import stock_of
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.turn import wait_for_turn
from coupon_workers.coupons.source_sql import GRANTED
from coupon_workers.errors import Busy, Conflict, NotFound
from coupon_workers.pools.pool_store import recount_pool
from coupon_workers.reconciliation.gate_books import lost_claims
from coupon_workers.reconciliation.unit_holders import HOLDERS
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import expire_coupons, preheat_template, settle_claims, sweep_risk
from coupon_workers.templates.archived import check_nothing_archived

Row = Mapping[str, Any]
Outcome = dict[str, Any]

COUNT_TIMEOUT_MS = 60_000
"""A count of the template's rows, for which settling waits: seconds with millions of them."""

_COUNTERS = """
    SELECT issued_quantity AS issued, rejected_quantity AS rejected, reserved_quantity AS reserved,
           granted_quantity AS granted, held_quantity AS held, archived_quantity AS archived,
           total_quantity AS total, status, type
      FROM coupon_template WHERE template_id = :template_id"""
_HOLD = text(f"{_COUNTERS} FOR NO KEY UPDATE")

# What no open batch issues from is given back here: the batch's row is held before the template's, as by its own end.
_GIVE_BACK = text("""
    UPDATE issue_batch SET left_quantity = 0, updated_at = :now
     WHERE template_id = :template_id AND status NOT IN ('running', 'paused') AND left_quantity > 0
""")

# What is archived is as its counters say: the archive is not searched by template.
_ROWS = text(f"""
    SELECT archived_quantity - restocked_quantity
           + (SELECT count(*) FROM coupon WHERE template_id = :template_id AND source <> 'transfer') AS issued,
           archived_granted_quantity
           + (SELECT count(*) FROM coupon WHERE template_id = :template_id AND {GRANTED}) AS granted,
           (SELECT count(*) FROM claim_rejection WHERE template_id = :template_id) AS rejected,
           (SELECT coalesce(sum(kept), 0) FROM ({HOLDERS}) AS holder WHERE template_id = :template_id) AS reserved,
           (SELECT count(*) FROM risk_review WHERE template_id = :template_id AND state = 'held') AS held
      FROM coupon_template WHERE template_id = :template_id
""")
_SET = text("""
    UPDATE coupon_template SET issued_quantity = :issued, rejected_quantity = :rejected, reserved_quantity = :reserved,
           granted_quantity = :granted, held_quantity = :held, updated_at = :now
     WHERE template_id = :template_id
""")

_COUNTED = ("issued", "rejected", "reserved", "granted", "held")
_SET_BY = {
    # The gate has confirmed the coupons' rows.
    "issued_counter_differs": ("issued", "granted"),
    "rejected_counter_differs": ("rejected",),
    "reservation_kept": ("reserved", "held"),
    "reserved_counter_differs": ("reserved", "held"),
    "held_counter_differs": ("held",),
    "granted_counter_differs": ("granted",),
}
"""What each class vouches for: another counter that differs may be the trace of rows that were lost."""

_UNKNOWN_TO_GATE = ("draft", "pending_approval")


def recount_template(connection: Connection, services: Services, finding: Row, now: datetime, operator: str) -> Outcome:
    """Set the counters that the finding speaks of to what the template's rows are: exact also while claims of it are
    settled, as they change counters and rows in one transaction, under the row that is held here.

    Where units set aside were counted wrongly the gate is rebuilt too. Raises ``NotFound`` ``TEMPLATE_NOT_FOUND``;
    ``Conflict`` ``BUSY``, and ``OVER_ISSUED`` when there are more than the total.
    """
    key = {"template_id": finding["template_id"], "now": now}
    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {COUNT_TIMEOUT_MS}")
    # A preheat that is asked for here waits for this turn, and then reads what is committed.
    if not wait_for_turn(connection, finding["template_id"], 0):
        raise Busy("BUSY", "the template is being rebuilt or given away: try again")
    connection.execute(_GIVE_BACK, key)
    before = connection.execute(_HOLD, key).mappings().one_or_none()
    if before is None:
        raise NotFound("TEMPLATE_NOT_FOUND", f"there is no template {finding['template_id']}")
    rows = connection.execute(_ROWS, key).mappings().one()
    told = {name: before[name] for name in _COUNTED}
    named = _SET_BY[finding["finding_class"]]
    after = told | {name: int(rows[name]) for name in named}
    if after["issued"] + after["reserved"] > before["total"] or after["granted"] > after["issued"]:
        raise Conflict("OVER_ISSUED", "there are more coupons and units set aside than may be", **after)
    connection.execute(_SET, key | after)
    if before["type"] == "random_amount" and "issued" in named:
        recount_pool(connection, finding["template_id"])
    aside = any(told[name] != after[name] for name in ("reserved", "granted", "held"))
    has_gate = before["status"] not in _UNKNOWN_TO_GATE and not before["archived"]
    rebuilt = aside and has_gate and not _lost(services, finding["template_id"])
    if rebuilt:
        services.post.send(preheat_template(finding["template_id"]))
    return {"before": told, "after": after, "preheat_sent": rebuilt}


def preheat(connection: Connection, services: Services, finding: Row, now: datetime, operator: str) -> Outcome:
    """Send for a rebuild of the template's keys.

    Raises ``Conflict``: ``LOST_CLAIMS`` when the gate alone knows of accepted claims, which would be forgotten,
    ``HAS_ARCHIVED``.
    """
    template_id = finding["template_id"]
    status = connection.scalar(text("SELECT status FROM coupon_template WHERE template_id = :id"), {"id": template_id})
    if status is None:
        raise NotFound("TEMPLATE_NOT_FOUND", f"there is no template {template_id}")
    if status in _UNKNOWN_TO_GATE:
        raise Conflict("INVALID_STATUS", f"a template that is {status} has nothing to preheat", current_status=status)
    check_nothing_archived(connection, template_id)
    if lost := _lost(services, template_id):
        raise Conflict("LOST_CLAIMS", "the gate alone knows of accepted claims: a rebuild forgets them", claims=lost)
    services.post.send(preheat_template(template_id))
    return {"sent": "preheat_template"}


def ring_bell(connection: Connection, services: Services, finding: Row, now: datetime, operator: str) -> Outcome:
    """Send a doorbell. Raises ``Conflict`` ``NOTHING_WAITS`` when the queue is empty by now."""
    template_id = finding["template_id"]
    queued = stock_of(services, [template_id])[template_id].queued
    if not queued:
        raise Conflict("NOTHING_WAITS", "the queue is empty")
    services.post.send(settle_claims(template_id, 0))
    return {"sent": "settle_claims", "queued": queued}


def sweep_expired(connection: Connection, services: Services, finding: Row, now: datetime, operator: str) -> Outcome:
    """Send for the sweep of expired coupons."""
    services.post.send(expire_coupons())
    return {"sent": "expire_coupons"}


def sweep_overdue_reviews(
    connection: Connection, services: Services, finding: Row, now: datetime, operator: str
) -> Outcome:
    """Send for the sweep of risk control."""
    services.post.send(sweep_risk())
    return {"sent": "sweep_risk"}


def _lost(services: Services, template_id: int) -> list[str]:
    """Claims that are nowhere but in the gate's memory."""
    return [str(claim.claim_id) for claim in lost_claims(services, BucketKeys(template_id)) if claim.end is None]
