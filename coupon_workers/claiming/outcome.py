"""What the gate answers to a claim: one enum, in the order in which the script decides (DESIGN 6)."""

from __future__ import annotations

from enum import StrEnum


class ClaimOutcome(StrEnum):
    """The members stand in order of precedence: when two would apply, the earlier is answered.

    ``retry_helps`` says whether the same request may succeed later without anything else changing.
    """

    REPLAYED = "REPLAYED"
    TEMPLATE_NOT_FOUND = "TEMPLATE_NOT_FOUND"
    NOT_WARMED = "NOT_WARMED"
    RATE_LIMITED = "RATE_LIMITED"
    ENDED = "ENDED"
    NOT_STARTED = "NOT_STARTED"
    PAUSED = "PAUSED"
    NOT_ELIGIBLE = "NOT_ELIGIBLE"
    LIMIT_REACHED = "LIMIT_REACHED"
    DAILY_LIMIT_REACHED = "DAILY_LIMIT_REACHED"
    SOLD_OUT = "SOLD_OUT"
    BACKLOG_FULL = "BACKLOG_FULL"
    RISK_REJECTED = "RISK_REJECTED"
    ACCEPTED = "ACCEPTED"

    @property
    def retry_helps(self) -> bool:
        """Whether asking again later may be answered otherwise."""
        return self in _RETRY_HELPS


_RETRY_HELPS = frozenset(
    {
        ClaimOutcome.NOT_WARMED,
        ClaimOutcome.RATE_LIMITED,
        ClaimOutcome.NOT_STARTED,
        ClaimOutcome.PAUSED,
        ClaimOutcome.DAILY_LIMIT_REACHED,
        ClaimOutcome.BACKLOG_FULL,
    }
)


class RejectionReason(StrEnum):
    """Why an accepted claim could not be issued, in order of precedence at settling."""

    DUPLICATE = "DUPLICATE"
    PAUSED = "PAUSED"
    OFFLINE = "OFFLINE"
    LIMIT_REACHED = "LIMIT_REACHED"
    DAILY_LIMIT_REACHED = "DAILY_LIMIT_REACHED"
    SOLD_OUT = "SOLD_OUT"
    INVALID = "INVALID"
    RISK_REJECTED = "RISK_REJECTED"


HELD = "held"
"""The state of a claim whose unit is held for review: neither issued nor rejected. Its caller is told "queued"."""
