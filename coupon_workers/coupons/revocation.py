"""Recalling a template's unused coupons: in chunks, each once, their units back to the stock if the template says so.

A recall means the coupons that were issued before it was asked for, by the database's clock, and what has been made of
them by giving them away. It passes through them again and again until a pass finds none, so that a coupon
that came back meanwhile, or was settled late, is met too. Coupons that an order has locked are left to it, and told.
A revoked coupon goes on counting against its user's limit, as one does that was used.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.settle_call import call_settling_back
from coupon_workers.claiming.turn import wait_for_turn
from coupon_workers.coupons.revocation_sql import PAGE, REVOKE
from coupon_workers.errors import NotFound, StoreUnavailable
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import revoke_coupons
from coupon_workers.templates.template_store import read_template
from coupon_workers.wallet.stale_wallet import forget_stale_wallets

CHUNK = 1_000
"""Coupons looked at in one transaction, in which settling of the template waits for its row."""

TURN_S = 5.0
"""A worker hands over to a new message after this, so that shut-downs are short and others take turns."""

Row = Mapping[str, Any]
"""A row of ``coupon_revocation``."""

_ASK = text("""
    INSERT INTO coupon_revocation (revocation_id, template_id, reason, asked_by, created_at, updated_at)
    VALUES (:revocation_id, :template_id, :reason, :asked_by, clock_timestamp(), :now) ON CONFLICT DO NOTHING
""")
_FIND = text("""
    SELECT * FROM coupon_revocation
     WHERE revocation_id = :revocation_id OR (template_id = :template_id AND status = 'running')
     ORDER BY revocation_id <> :revocation_id LIMIT 1
""")
_RUNNING = text("SELECT template_id FROM coupon_revocation WHERE revocation_id = :revocation_id AND status = 'running'")
_HOLD = text("SELECT * FROM coupon_revocation WHERE revocation_id = :revocation_id FOR NO KEY UPDATE")
_MOVE = text("""
    UPDATE coupon_revocation
       SET cursor = :cursor, found_count = found_count + :found, moved_count = moved_count + :moved,
           locked_count = locked_count + :locked, revoked_count = revoked_count + :moved,
           restocked_count = restocked_count + :restocked, updated_at = :now
     WHERE revocation_id = :revocation_id
""")
_AGAIN = text("""
    UPDATE coupon_revocation
       SET cursor = 0, pass_no = pass_no + 1, found_count = 0, moved_count = 0, locked_count = 0, updated_at = :now
     WHERE revocation_id = :revocation_id
""")
_FINISH = text("""
    UPDATE coupon_revocation SET status = 'done', finished_at = :now, updated_at = :now
     WHERE revocation_id = :revocation_id
""")
_FORGOTTEN = text("""
    SELECT revocation_id FROM coupon_revocation WHERE status = 'running' AND updated_at < :before
     ORDER BY updated_at LIMIT 100
""")

log = get_logger(__name__)


def ask_revocation(services: Services, template_id: int, revocation_id: int, reason: str, asked_by: str) -> Row:
    """Write a recall down and have a worker do it; while one of the template runs, that one is answered.

    Raises ``NotFound`` ``TEMPLATE_NOT_FOUND``, ``StoreUnavailable`` of PostgreSQL.
    """
    named = {"revocation_id": revocation_id, "template_id": template_id, "reason": reason, "asked_by": asked_by}
    with transaction(services.engine) as connection:
        read_template(connection, template_id)
        if connection.execute(_ASK, named | {"now": services.clock()}).rowcount:
            facts = {"revocation_id": str(revocation_id), "reason": reason}
            record(connection, AuditAction.TEMPLATE_REVOKE, f"template:{template_id}", after=facts)
        revocation = dict(connection.execute(_FIND, named).mappings().one())
    _send(services, revocation["revocation_id"])
    return revocation


def perform_revocation(services: Services, revocation_id: int, *, turn_s: float = TURN_S, chunk: int = CHUNK) -> None:
    """Go on with a recall until it is through or the turn is over.

    Safe at any time, by any number of workers, and to be broken off: each chunk is a transaction, with its place.
    Raises ``StoreUnavailable``: the sweep sends it again.
    """
    turn_ends = time.monotonic() + turn_s
    _wait_for_issuers(services, revocation_id)
    while _step(services, revocation_id, chunk):
        if time.monotonic() > turn_ends:
            _send(services, revocation_id)
            return


def sweep_revocations(services: Services, older_than: datetime) -> int:
    """Send recalls again that nobody has gone on with since; how many. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        forgotten = list(connection.scalars(_FORGOTTEN, {"before": older_than}))
    for revocation_id in forgotten:
        services.post.send(revoke_coupons(revocation_id))
    return len(forgotten)


def revoke_all(connection: Connection, coupons: Sequence[tuple[str, int]], operator: str, now: datetime) -> Any:
    """Revoke those of ``coupons`` (user and number) that are unused and in nobody's hand: a row for each, with its
    ``user_id``, and with ``restocked``, the units that went back in all."""
    named = {
        "users": [user_id for user_id, _ in coupons],
        "coupons": [coupon_id for _, coupon_id in coupons],
        "operator": operator,
        "request_id": None,
        "now": now,
    }
    return connection.execute(REVOKE, named).all()


def tell_gate(services: Services, template_id: int) -> None:
    """Bring the units that went back to the gate; the sweep of the gates does it if Redis is away."""
    try:
        sync_template(services, template_id)
    except StoreUnavailable as error:
        log.warning("the gate learns of units that went back later", template_id=template_id, error=str(error))


def _wait_for_issuers(services: Services, revocation_id: int) -> None:
    """Whatever somebody was about to commit when the recall was asked for is there from here on."""
    with transaction(services.engine) as connection:
        template_id = connection.scalar(_RUNNING, {"revocation_id": revocation_id})
        if template_id is None:
            return
        if not wait_for_turn(connection, template_id, 0):
            raise StoreUnavailable("PostgreSQL", "the template is busy")
    call_settling_back(services, template_id)


def _step(services: Services, revocation_id: int, chunk: int) -> bool:
    """One chunk; whether to go on at once."""
    now = services.clock()
    with transaction(services.engine) as connection:
        revocation = connection.execute(_HOLD, {"revocation_id": revocation_id}).mappings().one_or_none()
        if revocation is None:
            raise NotFound("REVOCATION_NOT_FOUND", "there is no such recall")
        if revocation["status"] != "running":
            return False
        template_id = revocation["template_id"]
        place = {"asked_at": revocation["created_at"], "template_id": template_id, "cursor": revocation["cursor"]}
        page = connection.execute(PAGE, place | {"now": now, "page": chunk}).all()
        if not page:
            return _end_pass(connection, dict(revocation), now)
        wanted = [(row.user_id, row.coupon_id) for row in page if row.wanted]
        moved = revoke_all(connection, wanted, f"revocation:{revocation_id}", now) if wanted else []
        counted = {
            "revocation_id": revocation_id,
            "cursor": page[-1].coupon_id,
            "found": len(wanted),
            "moved": len(moved),
            "locked": sum(row.held for row in page),
            "restocked": moved[0].restocked if moved else 0,
            "now": now,
        }
        connection.execute(_MOVE, counted)
        crash_point("revoke.before_commit")
    crash_point("revoke.after_commit")
    if counted["restocked"]:
        tell_gate(services, template_id)
    forget_stale_wallets(services, {row.user_id for row in moved})
    return True


def _end_pass(connection: Connection, revocation: Row, now: datetime) -> bool:
    """Another pass, unless this one has found nothing. One that found coupons and got none is tried again later: they
    are in others' hands."""
    named = {"revocation_id": revocation["revocation_id"], "now": now}
    if revocation["found_count"]:
        connection.execute(_AGAIN, named)
        return bool(revocation["moved_count"])
    connection.execute(_FINISH, named)
    log.info("coupons_revoked", template_id=revocation["template_id"], count=revocation["revoked_count"])
    return False


def _send(services: Services, revocation_id: int) -> None:
    try:
        services.post.send(revoke_coupons(revocation_id))
    except StoreUnavailable as error:
        # It is written down, and the sweep sends what nobody goes on with.
        log.warning("recall not announced", revocation_id=revocation_id, error=str(error))
