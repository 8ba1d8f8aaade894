"""When a message is sent again: the schedule of Standard Webhooks, with a little jitter."""

from __future__ import annotations

import random
from datetime import timedelta

WAITS = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""Before the second attempt, the third, …: ten attempts in a little more than three days."""

JITTER = 0.1
"""Of a wait, at most: messages that failed together do not come back together."""

LONGEST_PAUSE = timedelta(seconds=60)


def wait_after(step: int) -> timedelta | None:
    """How long to wait after ``step`` failed attempts (1: the first); None when that was the last."""
    if step > len(WAITS):
        return None
    return WAITS[step - 1] * (1 + random.uniform(0, JITTER))


def pause_after(failures: int) -> timedelta:
    """How long a target is left alone that could not be reached ``failures`` times in succession."""
    return min(LONGEST_PAUSE, timedelta(seconds=2 ** min(failures, 6)))
