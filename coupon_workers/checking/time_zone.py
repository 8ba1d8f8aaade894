"""DESIGN 12: local days are the same to the gate and to the books.

The gate has its offsets from this machine's time zone data, statements have them from PostgreSQL's own. Governments
change their clocks at short notice, and the two need not have heard of it at the same time.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import snapshot
from coupon_workers.runtime.clock import from_ms, rfc3339
from coupon_workers.runtime.services import Services
from coupon_workers.templates.local_day import utc_offsets

RULE = "time_zone"

LOOK_S = 7 * 24 * 3600
"""Summer time of one side alone lasts for weeks: it is met between the other side's changes."""

_ZONES = text("""
    SELECT timezone, min(from_at) AS from_at, max(to_at) AS to_at
      FROM (SELECT timezone, claim_start, claim_end FROM coupon_template
             UNION ALL
            SELECT timezone, start_at, end_at FROM lottery) AS span(timezone, from_at, to_at)
     GROUP BY timezone ORDER BY timezone
""")
_APART = text("""
    SELECT at_s, ours_s, theirs_s
      FROM unnest(CAST(:instants AS bigint[]), CAST(:offsets AS bigint[])) AS ours(at_s, ours_s),
           LATERAL (SELECT CAST(extract(epoch FROM to_timestamp(at_s) AT TIME ZONE :timezone) AS bigint) - at_s)
                AS theirs(theirs_s)
     WHERE theirs_s <> ours_s ORDER BY at_s LIMIT 1
""")


def time_zone(services: Services) -> list[Breach]:
    """Time zones of templates and lotteries that PostgreSQL tells other times of, from which moment on."""
    with snapshot(services) as connection:
        zones = connection.execute(_ZONES).all()
        found = [(zone.timezone, _first_apart(connection, *zone)) for zone in zones]
    return [
        Breach(RULE, f"{timezone} at {rfc3339(from_ms(apart.at_s * 1000))}", f"{apart.ours_s} s", f"{apart.theirs_s} s")
        for timezone, apart in found
        if apart is not None
    ]


def _first_apart(connection: Connection, timezone: str, start: datetime, end: datetime) -> Any:
    """The first instant looked at for which the two tell other offsets from UTC, or None."""
    looks = _looks(utc_offsets(timezone, start, end), int(end.timestamp()))
    named = {"timezone": timezone, "instants": [at for at, _ in looks], "offsets": [offset for _, offset in looks]}
    return connection.execute(_APART, named).one_or_none()


def _looks(offsets: list[tuple[int, int]], end_s: int) -> list[tuple[int, int]]:
    """Instants and our offsets at them: first and last second of each offset's reign, and each week amid it."""
    bounds = [*offsets, (max(end_s, offsets[-1][0]) + 1, 0)]
    return [
        (at_s, offset_s)
        for (from_s, offset_s), (to_s, _) in pairwise(bounds)
        for at_s in {*range(from_s, to_s, LOOK_S), to_s - 1}
    ]
