"""Moving coupons that ended long ago out of everybody's way, with their history (DESIGN 10, decision 0020).

A coupon goes when it has ended, was never on an order, was last changed ``COUPON_ARCHIVE_AFTER_DAYS`` ago, and its
template's claiming ended as long ago. It stays readable: whoever asks for one by its number finds it in either table.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from coupon_workers.claiming.turn import settle_lock
from coupon_workers.coupons.archive_sql import BY_KEYS, DUE, HOLD, MOVE, NOTE, PLACE, SCANS_ALLOWED
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import LEAST_ARCHIVE_DAYS
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import archive_coupons as archive_coupons_task
from coupon_workers.wallet.stale_wallet import forget_stale_wallets

CHUNK = 1_000
"""Coupons looked at in one transaction: some hundredths of a second, on coupons that nobody changes any more."""

TURN_S = 5.0
"""As in ``coupons/expiry.py``: then a new message takes over."""

MOST_TEMPLATES = 10_000
"""Templates of a turn, those that ended first before others."""

REST = timedelta(days=LEAST_ARCHIVE_DAYS)
"""A template is left alone for so long after any change of it, and passed through at most so often: what ends by and by
is moved together, and what stays with its orders is not read every day."""

Named = dict[str, Any]
"""Arguments of the statements, by their names there."""

log = get_logger(__name__)


class _Chunk(NamedTuple):
    """How many coupons were moved, and whether the pass through their template has come to its end."""

    moved: int
    through: bool


def archive_coupons(services: Services, now: datetime, *, turn_s: float = TURN_S) -> int:
    """Move what is old enough at ``now``; returns how many coupons.

    Safe at any time, by any number of workers, and to be broken off: each chunk is a transaction, in which coupons,
    history and counters move together. A template that another has in hand is left to it. When the turn is over a
    follow-up message goes out. Raises ``StoreUnavailable``; the chunks before then are done.
    """
    if not services.settings.archive_after_days:
        return 0
    turn_ends = time.monotonic() + turn_s
    before = now - timedelta(days=services.settings.archive_after_days)
    named = {"before": before, "now": now, "unchanged_since": now - REST}
    archived = 0
    for template_id in _due_templates(services, named):
        while (chunk := _move_chunk(services, named | {"template_id": template_id})) is not None:
            archived += chunk.moved
            if time.monotonic() > turn_ends:
                services.post.send(archive_coupons_task())
                log.info("coupons_archived", count=archived)
                return archived
            if chunk.through:
                break
    if archived:
        log.info("coupons_archived", count=archived)
    return archived


def _due_templates(services: Services, named: Named) -> list[int]:
    with transaction(services.engine) as connection:
        connection.execute(SCANS_ALLOWED)
        return list(connection.scalars(DUE, named | {"most": MOST_TEMPLATES}))


def _move_chunk(services: Services, named: Named) -> _Chunk | None:
    """Look at the template's next coupons; None when it is in other hands, or not due any more."""
    with transaction(services.engine) as connection:
        if not connection.scalar(HOLD, named | {"lock": settle_lock(named["template_id"], 0)}):
            return None
        place = connection.execute(PLACE, named).first()
        if place is None:
            return None
        connection.execute(BY_KEYS)
        found = connection.execute(MOVE, named | {"cursor": place.cursor, "chunk": CHUNK}).one()
        through = found.looked_at < CHUNK
        oldest = min(
            (each for each in (place.oldest_left, found.oldest_left) if each is not None), default=named["now"]
        )
        _note(connection, named, found.last, oldest, through=through)
        crash_point("archive.before_commit")
    crash_point("archive.after_commit")
    forget_stale_wallets(services, found.users)
    return _Chunk(found.moved, through)


def _note(connection: Connection, named: Named, last: int, oldest: datetime, *, through: bool) -> None:
    """Where the pass stands; at its end, when the next one is due."""
    if through:
        note = {"cursor": 0, "oldest_left": None, "due_from": max(oldest, named["before"] + REST)}
    else:
        note = {"cursor": last, "oldest_left": oldest, "due_from": None}
    connection.execute(NOTE, named | note)
