"""Time comes in from outside: a clock that is given, not looked up.

Every instant in the program is an aware ``datetime`` in UTC, or an integer of milliseconds since 1970 (``…_ms``).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
"""Returns the present instant, aware, in UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def utc_now() -> datetime:
    """The machine's clock, in UTC. freezegun moves it in tests."""
    return datetime.now(UTC)


def to_ms(instant: datetime) -> int:
    """Whole milliseconds since 1970; what is finer is cut off.

    Raises ``ValueError`` for a naive datetime: it names no instant.
    """
    if instant.tzinfo is None:
        raise ValueError("a naive datetime names no instant")
    return (instant - _EPOCH) // _MILLISECOND


def from_ms(instant_ms: int) -> datetime:
    """The instant, in UTC, of ``instant_ms`` milliseconds since 1970."""
    return _EPOCH + timedelta(milliseconds=instant_ms)


def rfc3339(instant: datetime) -> str:
    """``2026-11-11T00:00:00Z``, with as many decimals as the instant has (API.md, Conventions).

    Raises ``ValueError`` for a naive datetime.
    """
    if instant.tzinfo is None:
        raise ValueError("a naive datetime names no instant")
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
