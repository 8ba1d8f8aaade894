"""The moves a coupon may make in its life: the one table of DESIGN 7. ``docs/states.md`` draws it.

Every move is a guarded UPDATE that names the statuses it leaves, and writes its row into the coupon's flow.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class CouponStatus(StrEnum):
    """Where a coupon is in its life."""

    UNUSED = "unused"
    LOCKED = "locked"
    REDEEMED = "redeemed"
    EXPIRED = "expired"
    REVOKED = "revoked"
    TRANSFERRED = "transferred"


class FlowAction(StrEnum):
    """What moves a coupon."""

    ISSUE = "issue"
    LOCK = "lock"
    REDEEM = "redeem"
    RELEASE = "release"
    REFUND = "refund"
    EXPIRE = "expire"
    REVOKE = "revoke"
    TRANSFER = "transfer"


class Transition(NamedTuple):
    """A move: ``action`` leads from ``before`` (None: there was no coupon) to ``after``."""

    action: FlowAction
    before: CouponStatus | None
    after: CouponStatus


_A, _S = FlowAction, CouponStatus

TRANSITIONS = (
    Transition(_A.ISSUE, None, _S.UNUSED),
    Transition(_A.LOCK, _S.UNUSED, _S.LOCKED),
    Transition(_A.REDEEM, _S.LOCKED, _S.REDEEMED),
    Transition(_A.REDEEM, _S.UNUSED, _S.REDEEMED),  # direct use, or a payment that came after the lock had run out
    Transition(_A.RELEASE, _S.LOCKED, _S.UNUSED),
    Transition(_A.REFUND, _S.REDEEMED, _S.UNUSED),
    Transition(_A.REFUND, _S.REDEEMED, _S.EXPIRED),  # its validity has passed meanwhile, and is not extended
    Transition(_A.EXPIRE, _S.UNUSED, _S.EXPIRED),  # a lock outlives the end of validity until its own deadline
    Transition(_A.REVOKE, _S.UNUSED, _S.REVOKED),
    Transition(_A.TRANSFER, _S.UNUSED, _S.TRANSFERRED),  # the receiver's coupon is another one, and is issued
)


def leaves(action: FlowAction) -> frozenset[CouponStatus]:
    """The statuses that ``action`` may leave: what its guarded UPDATE names. None for ``issue``."""
    return frozenset(move.before for move in TRANSITIONS if move.action == action and move.before is not None)


def reaches(action: FlowAction, before: CouponStatus | None) -> frozenset[CouponStatus]:
    """The statuses to which ``action`` may lead from ``before``; none when it may not leave it."""
    return frozenset(move.after for move in TRANSITIONS if (move.action, move.before) == (action, before))


def replay(flow: Iterable[tuple[str, str | None, str]]) -> CouponStatus:
    """The status at the end of a coupon's flow: its rows' action, from and to, oldest first (DESIGN 3.6).

    Raises ``ValueError`` naming the first row that is no move of the table, or leaves another status than the row
    before it reached; and for a flow without rows.
    """
    status: CouponStatus | None = None
    for number, (action, before, after) in enumerate(flow, start=1):
        if before != status or (action, before, after) not in TRANSITIONS:
            raise ValueError(f"row {number} of the flow: {action} from {before} to {after}, after {status}")
        status = CouponStatus(after)
    if status is None:
        raise ValueError("a coupon has a flow of one row at least")
    return status
