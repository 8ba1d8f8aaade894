"""What the gate answers to a draw, and why an accepted one may count for nothing (DESIGN 11)."""

from __future__ import annotations

from enum import StrEnum


class DrawOutcome(StrEnum):
    """The members stand in order of precedence: when two would apply, the earlier is answered."""

    REPLAYED = "REPLAYED"
    LOTTERY_NOT_FOUND = "LOTTERY_NOT_FOUND"
    NOT_WARMED = "NOT_WARMED"
    RATE_LIMITED = "RATE_LIMITED"
    ENDED = "ENDED"
    NOT_STARTED = "NOT_STARTED"
    PAUSED = "PAUSED"
    LIMIT_REACHED = "LIMIT_REACHED"
    DAILY_LIMIT_REACHED = "DAILY_LIMIT_REACHED"
    BACKLOG_FULL = "BACKLOG_FULL"
    DRAWN = "DRAWN"

    @property
    def retry_helps(self) -> bool:
        """Whether asking again later may be answered otherwise."""
        return self in _RETRY_HELPS


_RETRY_HELPS = frozenset(
    {
        DrawOutcome.NOT_WARMED,
        DrawOutcome.RATE_LIMITED,
        DrawOutcome.NOT_STARTED,
        DrawOutcome.PAUSED,
        DrawOutcome.DAILY_LIMIT_REACHED,
        DrawOutcome.BACKLOG_FULL,
    }
)


class DrawRejection(StrEnum):
    """Why an accepted draw counts for nothing, in order of precedence at settling. Each means that Redis had lost its
    memory: the gate refuses for the same reasons."""

    DUPLICATE = "DUPLICATE"
    ENDED = "ENDED"
    LIMIT_REACHED = "LIMIT_REACHED"
    DAILY_LIMIT_REACHED = "DAILY_LIMIT_REACHED"
    SOLD_OUT = "SOLD_OUT"
