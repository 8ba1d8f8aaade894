"""Deciding about claims that are held: approved, rejected, or rejected by themselves at their deadline.

The end of a review is one transaction with what it makes of the claim: a coupon or a rejection, and the unit out of
what is set aside. The gate is told after the commit (``lua/end_review.lua``), once, by whoever comes first; ``untold``
stays in the row until it was, for the sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import RejectionReason
from coupon_workers.claiming.pending import PendingClaim
from coupon_workers.claiming.settle_call import call_settling_back
from coupon_workers.claiming.settle_sql import hold_template, lock_template, read_books, write_verdicts
from coupon_workers.claiming.turn import wait_for_turn
from coupon_workers.claiming.verdict import Verdict, judge
from coupon_workers.errors import Busy, Conflict, NotFound, StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.wallet.wallet_cache import forget_wallets

log = get_logger(__name__)

Row = Mapping[Any, Any]

APPROVED, REJECTED, EXPIRED = "approved", "rejected", "expired"

_TEMPLATE_OF = text("SELECT template_id FROM risk_review WHERE claim_id = :claim_id")
_HOLD = text("SELECT * FROM risk_review WHERE claim_id = :claim_id FOR UPDATE")
_END = text("""
    WITH ended AS (
        UPDATE risk_review SET state = :state, reason = :reason, decided_by = :operator, decided_at = :now,
               comment = :comment
         WHERE claim_id = :claim_id AND state = 'held' RETURNING template_id
    )
    UPDATE coupon_template t SET reserved_quantity = reserved_quantity - 1, held_quantity = held_quantity - 1
      FROM ended WHERE t.template_id = ended.template_id
""")
_NOTE = text("""
    UPDATE risk_review SET reason = :reason, untold = CAST(:untold AS jsonb) WHERE claim_id = :claim_id RETURNING *
""")
_TOLD = text("UPDATE risk_review SET untold = NULL WHERE claim_id = :claim_id AND untold IS NOT NULL")
_OVERDUE = text("""
    SELECT claim_id, template_id FROM risk_review
     WHERE state = 'held' AND deadline_at <= :now ORDER BY deadline_at LIMIT 500
""")
_UNTOLD = text("SELECT * FROM risk_review WHERE untold IS NOT NULL ORDER BY claim_id LIMIT 500")


def approve(services: Services, claim_id: int, operator: str, comment: str | None = None) -> Row:
    """Settle the claim as if it had not been held: it is issued, or rejected for what forbids it by now (``reason``).

    Approved again by the same key, the review is answered as it is. Past its deadline nobody decides: it expires, if
    the sweep has not come yet. Raises ``NotFound`` ``REVIEW_NOT_FOUND``; ``Conflict``: ``ALREADY_DECIDED`` with its
    ``state``, ``BUSY``; ``StoreUnavailable``.
    """
    return _decide(services, claim_id, APPROVED, operator, comment)


def reject(services: Services, claim_id: int, operator: str, comment: str) -> Row:
    """Reject the claim; its unit goes back to the stock. Raises as ``approve``."""
    return _decide(services, claim_id, REJECTED, operator, comment)


def expire_reviews(services: Services) -> int:
    """Reject the claims whose deadline has passed; returns how many. Safe at any time, by any number.

    A template that is busy is waited for once. Raises ``StoreUnavailable``.
    """
    with transaction(services.engine) as connection:
        overdue = connection.execute(_OVERDUE, {"now": services.clock()}).all()
    expired = 0
    busy: set[int] = set()
    for claim_id, template_id in overdue:
        if template_id in busy:
            continue
        try:
            _decide(services, claim_id, EXPIRED, None, None)
            expired += 1
        except Conflict as error:
            busy |= {template_id} if isinstance(error, Busy) else set()
            log.info("an overdue review is left to others", claim_id=claim_id, code=error.code)
    return expired


def tell_forgotten(services: Services) -> int:
    """Tell gates of reviews that ended when Redis was away, or whose teller died; returns how many."""
    with transaction(services.engine) as connection:
        rows = connection.execute(_UNTOLD).mappings().all()
    for row in rows:
        _tell(services, row)
    return len(rows)


def _decide(services: Services, claim_id: int, state: str, operator: str | None, comment: str | None) -> Row:
    with transaction(services.engine) as connection:
        review = _hold(connection, claim_id)
        if review["state"] == "held" and review["deadline_at"] <= services.clock():
            review = _end(services, connection, review, EXPIRED, None, None)
        elif review["state"] == "held":
            review = _end(services, connection, review, state, operator, comment)
        crash_point("review.before_commit")
    crash_point("review.after_commit")
    call_settling_back(services, review["template_id"])
    if review["untold"] is not None:
        try:
            _tell(services, review)
        except StoreUnavailable as error:
            log.warning("the gate learns of a review's end later", claim_id=claim_id, error=str(error))
    if (review["state"], review["decided_by"]) != (state, operator):
        raise Conflict("ALREADY_DECIDED", f"the review has ended: {review['state']}", state=review["state"])
    return review


def _hold(connection: Connection, claim_id: int) -> Row:
    """The review, held, with settling kept out of its template until the transaction ends."""
    template_id = connection.scalar(_TEMPLATE_OF, {"claim_id": claim_id})
    if template_id is None:
        raise NotFound("REVIEW_NOT_FOUND", f"no claim {claim_id} was held for review")
    if not wait_for_turn(connection, template_id, 0):
        raise Busy("BUSY", "the template is being rebuilt or given away: try again")
    return connection.execute(_HOLD, {"claim_id": claim_id}).mappings().one()


def _end(
    services: Services, connection: Connection, review: Row, state: str, operator: str | None, comment: str | None
) -> Row:
    claim_id = review["claim_id"]
    template = lock_template(connection, review["template_id"], 0)
    assert template is not None  # a template that has claims is never deleted
    hold_template(connection, template)
    decision = {"state": state, "operator": operator, "now": services.clock(), "comment": comment}
    reason = None if state == APPROVED else RejectionReason.RISK_REJECTED
    connection.execute(_END, decision | {"claim_id": claim_id, "reason": reason})
    template = hold_template(connection, template)
    claim = _claim_of(review)
    if state == APPROVED:
        (verdict,) = judge([claim], read_books(connection, template, [claim]))
    else:
        verdict = Verdict(claim, reason, claim.claim_seq, new=True, answer=f"{claim_id} {reason}")
    redrawn = write_verdicts(connection, template, [verdict])
    ended = connection.execute(
        _NOTE, {"claim_id": claim_id, "reason": verdict.reason, "untold": _untold(verdict, redrawn.get(claim_id))}
    )
    if operator is not None:
        action = AuditAction.RISK_REVIEW_APPROVE if state == APPROVED else AuditAction.RISK_REVIEW_REJECT
        record(connection, action, f"claim:{claim_id}", after={"comment": comment, "reason": verdict.reason})
    return ended.mappings().one()


def _claim_of(review: Row) -> PendingClaim:
    return PendingClaim(
        "",
        review["claim_id"],
        review["user_id"],
        review["request_id"],
        review["claim_seq"],
        to_ms(review["claimed_at"]),
        review["day"],
        review["epoch"],
        review["channel"],
        review["face_value_minor"],
    )


def _untold(verdict: Verdict, redrawn: int | None) -> str:
    value = verdict.claim.face_value if verdict.reason is not None else None
    return to_json(
        {
            "answer": verdict.answer,
            "give_back": int(verdict.reason is not None),
            "value": "" if value is None else value,
            "redrawn": "" if redrawn is None else redrawn,
        }
    ).decode()


def _tell(services: Services, review: Row) -> None:
    """Raises ``StoreUnavailable``."""
    keys, end = BucketKeys(review["template_id"]), review["untold"]
    forget_wallets(services.redis, {review["user_id"]})
    lua_script("end_review")(
        services.redis,
        [keys.stock, keys.takers, keys.requests, keys.day_prefix, keys.pool, keys.meta],
        [
            review["claim_id"],
            f"{review['user_id']} {review['request_id']}",
            end["answer"],
            end["give_back"],
            review["day"],
            end["value"],
            end["redrawn"],
        ],
    )
    crash_point("review.after_tell")
    with transaction(services.engine) as connection:
        connection.execute(_TOLD, {"claim_id": review["claim_id"]})
