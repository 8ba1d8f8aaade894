"""Telling users of coupons that will end soon: an event each, once, for the notices (API.md, Back office)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from coupon_workers.runtime.database import database_errors, transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

WINDOW = timedelta(hours=1)
"""The ends that one run looks at: as long as the job's period, so that every end belongs to one run."""

CHUNK = 1_000

# Read through a cursor of the database: by the end of a local day a million coupons may end in the same instant, and
# every page that began in the midst of them would have to pass by those before it.
_ENDING = text("""
    SELECT c.user_id, c.coupon_id, c.template_id
      FROM coupon c JOIN coupon_template t USING (template_id)
     WHERE c.status = 'unused' AND c.valid_to >= :first AND c.valid_to < :end AND t.notify
""")

# Statistics that are older than the last big sale may take all coupons for those of the hour.
_BY_INDEX = text("SET LOCAL enable_seqscan = off")

_TELL = text("""
    INSERT INTO outbox (event, user_id, template_id, coupon_id, created_at)
    SELECT 'coupon.expiring', user_id, template_id, coupon_id, :now
      FROM unnest(CAST(:users AS text[]), CAST(:coupons AS bigint[]), CAST(:templates AS bigint[]))
        AS ending(user_id, coupon_id, template_id)
     ORDER BY user_id, coupon_id
    ON CONFLICT (user_id, coupon_id) WHERE event = 'coupon.expiring' DO NOTHING
""")

log = get_logger(__name__)


def warn_of_expiry(services: Services, logical_at: datetime, now: datetime) -> int:
    """Write an event for each unused coupon that ends ``COUPON_EXPIRY_NOTICE_HOURS`` after ``logical_at``, or within
    the hour from then, and has not ended by ``now``; returns how many are new.

    Only templates with ``notify``. Safe to run twice, at once or after being broken off: a coupon is told of once.
    Raises ``StoreUnavailable``; the chunks before then are done.
    """
    first = logical_at + timedelta(hours=services.settings.expiry_notice_hours)
    window = {"first": max(first, now + timedelta(microseconds=1)), "end": first + WINDOW}
    told = 0
    with database_errors(), services.engine.connect() as reading:
        reading.execute(_BY_INDEX)
        ending = reading.execution_options(yield_per=CHUNK).execute(_ENDING, window)
        for chunk in ending.partitions():
            told += _tell(services, chunk, now)
    if told:
        log.info("users_told_of_expiry", count=told, until=window["end"].isoformat())
    return told


def _tell(services: Services, chunk: Sequence[Any], now: datetime) -> int:
    """In the order of their keys: two runs at once then wait for one another, and never in a circle."""
    users, coupons, templates = (list(column) for column in zip(*chunk, strict=True))
    with transaction(services.engine) as writing:
        arguments = {"users": users, "coupons": coupons, "templates": templates, "now": now}
        return writing.execute(_TELL, arguments).rowcount
