"""An operator gives a user a coupon by hand, or one in place of another: once a request, with a reason (source
``manual``).

It takes a unit as batches do: out of what the books and the gate have free, under a new version of the template, with
which the unit leaves the gate's stock. It is no claim: no limit counts it, and none refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from coupon_workers.approval.budget import above_budget, worst_cost_of
from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.campaigns.reservation import free_units
from coupon_workers.claiming.settle_call import call_settling_back
from coupon_workers.claiming.turn import wait_for_turn
from coupon_workers.coupons.expiry import expire_one
from coupon_workers.coupons.reissue_sql import (
    ISSUE,
    KNOWN,
    REPLACED_ARCHIVED,
    REPLACES_ONCE,
    REPLACES_PREFIX,
    REQUEST_PREFIX,
    SOURCE,
    TURN,
)
from coupon_workers.coupons.revocation import revoke_all, tell_gate
from coupon_workers.coupons.revocation_sql import HOLD
from coupon_workers.coupons.transition import CouponStatus
from coupon_workers.errors import Conflict, NotFound, StoreUnavailable
from coupon_workers.runtime.clock import from_ms, rfc3339, to_ms
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import route_of
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.templates.archived import check_nothing_archived
from coupon_workers.templates.template_row import Row
from coupon_workers.templates.template_status import CLOCKED, TemplateStatus, effective_status
from coupon_workers.templates.template_store import lock_template
from coupon_workers.templates.validity_batch import windows_ms
from coupon_workers.wallet.stale_wallet import forget_stale_wallets

log = get_logger(__name__)

REPLACEABLE = frozenset({CouponStatus.UNUSED, CouponStatus.EXPIRED, CouponStatus.REVOKED})
"""What a coupon may be when another takes its place. What is on an order is returned, and what was given away is
another user's."""


@dataclass(frozen=True, slots=True)
class Reissue:
    """What is asked for. ``in_place_of``: the coupon of the same user that ends with it, or has ended."""

    user_id: str
    template_id: int
    request_id: str
    reason: str
    in_place_of: int | None = None

    @property
    def batch_no(self) -> str:
        """The coupon's."""
        return SOURCE if self.in_place_of is None else f"{REPLACES_PREFIX}{self.in_place_of}"

    @property
    def stored_request(self) -> str:
        """The coupon's ``request_id``."""
        return f"{REQUEST_PREFIX}{self.request_id}"


@dataclass(frozen=True, slots=True)
class Reissued:
    """The coupon, and whether this request had made it before."""

    coupon_id: int
    replayed: bool


def reissue_coupon(services: Services, wish: Reissue, operator: str) -> Reissued:
    """Issue the coupon, and revoke an unused one whose place it takes, in one transaction.

    Safe to run twice: a request has one coupon, for good. Raises ``NotFound`` ``TEMPLATE_NOT_FOUND``,
    ``COUPON_NOT_FOUND`` for one to be replaced that is not the user's; ``Conflict`` ``REQUEST_REUSED``,
    ``ALREADY_REPLACED`` with ``coupon_no``, ``COUPON_NOT_AVAILABLE`` with ``coupon_status``, ``SOLD_OUT``, ``PAUSED``,
    ``INVALID_STATUS``, ``HAS_ARCHIVED``, ``TYPE_NOT_OFFERED``, ``EXPIRED``, ``ABOVE_BUDGET``; ``StoreUnavailable``.
    """
    now = services.clock()
    with transaction(services.engine) as connection:
        connection.execute(TURN, {"user_id": wish.user_id})
        if (known := _known(connection, wish)) is not None:
            return Reissued(known, replayed=True)
        if not wait_for_turn(connection, wish.template_id, 0):
            raise StoreUnavailable("PostgreSQL", "the template is busy")
        replaced = None if wish.in_place_of is None else _hold_replaced(connection, wish)
        template = _lock_templates(connection, wish, replaced)
        window = _check_template(services, connection, template, now)
        restocked = _end(connection, wish, replaced, operator, now)
        if not free_units(services, connection, wish.template_id, given_back=restocked.count(wish.template_id)):
            raise Conflict("SOLD_OUT", "nothing is left of the template")
        coupon_id = services.next_id(route_of(wish.template_id))
        _write(connection, wish, coupon_id, window, operator, now)
        crash_point("reissue.before_commit")
    crash_point("reissue.after_commit")
    forget_stale_wallets(services, [wish.user_id])
    for template_id in {wish.template_id, *restocked}:
        tell_gate(services, template_id)
    call_settling_back(services, wish.template_id)
    return Reissued(coupon_id, replayed=False)


def _known(connection: Connection, wish: Reissue) -> int | None:
    """The coupon of this very request. Raises ``Conflict`` where the request or the coupon has another already."""
    replaces = None if wish.in_place_of is None else wish.batch_no
    named = {"user_id": wish.user_id, "request_id": wish.stored_request, "replaces": replaces}
    found = connection.execute(KNOWN, named).one_or_none()
    if found is None:
        return None
    if found.request_id != wish.stored_request:
        detail = "another coupon has taken its place already"
        raise Conflict("ALREADY_REPLACED", detail, coupon_no=str(found.coupon_id))
    if (found.template_id, found.batch_no) != (wish.template_id, wish.batch_no):
        raise Conflict("REQUEST_REUSED", "this request_id has made another coupon: a request is for one")
    return int(found.coupon_id)


def _hold_replaced(connection: Connection, wish: Reissue) -> Row:
    """The coupon whose place is taken, held until the transaction ends, if that may be."""
    named = {"user_id": wish.user_id, "coupon_id": wish.in_place_of}
    row = connection.execute(HOLD, named).mappings().one_or_none()
    row = row or connection.execute(REPLACED_ARCHIVED, named).mappings().one_or_none()
    if row is None:
        raise NotFound("COUPON_NOT_FOUND", "this user has no coupon of that number")
    if row["status"] not in REPLACEABLE:
        held_by = {} if row["order_no"] is None else {"order_no": row["order_no"]}
        detail = f"the coupon is {row['status']}"
        raise Conflict("COUPON_NOT_AVAILABLE", detail, coupon_status=row["status"], **held_by)
    return dict(row)


def _lock_templates(connection: Connection, wish: Reissue, replaced: Row | None) -> Row:
    """The template of the new coupon; that of the old one is held too. In the order of their numbers: two operators
    who replace coupons of each other's templates do not wait for one another."""
    wanted = {wish.template_id} | (set() if replaced is None else {replaced["template_id"]})
    return {template_id: lock_template(connection, template_id) for template_id in sorted(wanted)}[wish.template_id]


def _end(connection: Connection, wish: Reissue, replaced: Row | None, operator: str, now: datetime) -> list[int]:
    """End the coupon whose place is taken, if it has not ended; the template to which its unit went back.

    One whose validity has passed would else go on paying for an order that was paid in time, until a sweep comes.
    """
    if replaced is None or wish.in_place_of is None or replaced["status"] != CouponStatus.UNUSED:
        return []
    if replaced["valid_to"] <= now:
        expire_one(connection, wish.user_id, wish.in_place_of, now)
        return []
    [moved] = revoke_all(connection, [(wish.user_id, wish.in_place_of)], operator, now)
    return [replaced["template_id"]] if moved.restocked else []


def _check_template(services: Services, connection: Connection, template: Row, now: datetime) -> tuple[int, int]:
    """From and to when a coupon that is issued now would hold, in milliseconds."""
    status = effective_status(template, now)
    if template["type"] == "random_amount":
        raise Conflict("TYPE_NOT_OFFERED", "random amounts are drawn by claims alone", type=template["type"])
    if status is TemplateStatus.PAUSED:
        raise Conflict("PAUSED", "the template is paused")
    if status not in CLOCKED:
        raise Conflict("INVALID_STATUS", f"the template is {status}", current_status=status.value)
    check_nothing_archived(connection, template["template_id"])
    if above_budget(services.settings, template["currency"], worst_cost_of(template, 1)):
        raise Conflict("ABOVE_BUDGET", "one coupon may cost more than the budget: give it by a batch")
    [(starts_ms, ends_ms)] = windows_ms(template["validity"], template["timezone"], [to_ms(now)])
    if ends_ms <= to_ms(now):
        raise Conflict("EXPIRED", f"coupons of this template were valid until {rfc3339(from_ms(ends_ms))}")
    return starts_ms, ends_ms


def _write(
    connection: Connection, wish: Reissue, coupon_id: int, window: tuple[int, int], operator: str, now: datetime
) -> None:
    named = {
        "user_id": wish.user_id,
        "coupon_id": coupon_id,
        "template_id": wish.template_id,
        "batch_no": wish.batch_no,
        "claim_seq": coupon_id if wish.in_place_of is None else REPLACES_ONCE,
        "request_id": wish.stored_request,
        "asked_as": wish.request_id,
        "from_ms": window[0],
        "to_ms": window[1],
        "operator": operator,
        "now": now,
    }
    if connection.scalar(ISSUE, named) != 1:
        raise AssertionError("the template changed while it was held")
    facts = {
        "user_id": wish.user_id,
        "template_id": str(wish.template_id),
        "in_place_of": None if wish.in_place_of is None else str(wish.in_place_of),
        "request": wish.request_id,
        "reason": wish.reason,
    }
    record(connection, AuditAction.COUPON_REISSUE, f"coupon:{coupon_id}", after=facts)
