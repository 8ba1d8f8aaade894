"""Turns on a bucket: settling, preheats and the steps of campaigns each have it to themselves for a transaction."""

from __future__ import annotations

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

TURN_WAIT_MS = 3_000
"""Steps and batches take hundredths of a second; a preheat of millions has the bucket for longer than anyone waits."""

_LOCK_NOT_AVAILABLE = "55P03"

_TRY = text("SELECT pg_try_advisory_xact_lock(:lock)")
_WAIT = text("SELECT pg_advisory_xact_lock(:lock)")


def settle_lock(template_id: int, bucket: int) -> int:
    """The advisory lock that settling, preheating and issuing of a bucket take, each for itself."""
    return template_id ^ bucket


def preheat_lock(template_id: int, bucket: int) -> int:
    """The advisory lock that preheats of a bucket, and its retirement, take each for itself: a preheat has it before it
    waits for ``settle_lock``."""
    return ~settle_lock(template_id, bucket)


def wait_for_turn(connection: Connection, template_id: int, bucket: int) -> bool:
    """Have the bucket until the transaction ends; False when others kept it for longer than ``TURN_WAIT_MS``."""
    lock = {"lock": settle_lock(template_id, bucket)}
    if connection.scalar(_TRY, lock):  # as a rule nobody has it: one round trip instead of five
        return True
    try:
        with connection.begin_nested():
            connection.execute(text(f"SET LOCAL lock_timeout = {TURN_WAIT_MS}"))
            connection.execute(_WAIT, lock)
            connection.execute(text("SET LOCAL lock_timeout = 0"))
    except OperationalError as error:
        if getattr(error.orig, "pgcode", None) == _LOCK_NOT_AVAILABLE:
            return False
        raise
    return True
