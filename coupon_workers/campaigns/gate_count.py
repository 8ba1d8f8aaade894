"""The gate counts what batches give to users, step by step, each step once.

The gate itself knows how far a shard was counted: a worker that dies between the commit of a step and this leaves it
behind, and the next step of the shard counts what is missing. A preheat counts all coupons of the database, and notes
how far that was; it and the steps keep each other out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import text

from coupon_workers.campaigns.batch import batch_no
from coupon_workers.claiming.gate_step import KEPT, step_field
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services
from coupon_workers.templates.local_day import local_day_number

PAGE = 2_000
"""Users counted in one script: some milliseconds of Redis's time."""

# "+ 0" as in a step: the statistics know nothing of a new template, and all its coupons would be read for each member.
_ISSUED = text(
    """
    SELECT m.member_no, m.user_id, c.claimed_at
      FROM audience_member m
      LEFT JOIN coupon c ON c.user_id = m.user_id AND c.template_id + 0 = :template_id AND c.batch_no = :batch_no
     WHERE m.batch_id = :batch_id AND m.shard = :shard AND m.member_no > :from AND m.member_no <= :to
     ORDER BY m.member_no LIMIT :page
    """
)

_ENDED = text(
    "SELECT batch_id, shard_count FROM issue_batch b WHERE template_id = :template_id AND finished_at < :before"
    "   AND NOT EXISTS (SELECT FROM issue_shard s WHERE s.batch_id = b.batch_id AND s.gate_cursor < s.cursor)"
    " ORDER BY batch_id DESC LIMIT :most"
)
FORGOTTEN_AT_ONCE = 20
"""Batches, of those that a template had before the one that ends."""


def count_step(
    services: Services,
    template: Any,
    batch_id: int,
    shard: int,
    span: tuple[int, int],
    issued: tuple[Sequence[str], datetime],
) -> None:
    """Have the gate count the users of a step: members after ``span[0]`` up to ``span[1]``, of whom those in ``issued``
    got a coupon at that instant. ``template`` has ``template_id``, ``timezone`` and ``per_user_daily_limit``.

    Raises ``StoreUnavailable``: the next step of the shard counts them.
    """
    behind = _count(services, template, batch_id, shard, span, *issued)
    while behind is not None:
        start, behind = behind, None
        for to, users, at in _issued_pages(services, template, batch_id, shard, start, span[1]):
            behind = _count(services, template, batch_id, shard, (start, to), users, at)
            if behind is not None:
                break
            start = to


def _count(
    services: Services,
    template: Any,
    batch_id: int,
    shard: int,
    span: tuple[int, int],
    users: Sequence[str],
    at: datetime,
) -> int | None:
    """The member from which on must be counted first, if it is not this span's turn."""
    keys = BucketKeys(template["template_id"])
    day = "" if template["per_user_daily_limit"] is None else local_day_number(at, template["timezone"])
    reply = lua_script("count_takers")(
        services.redis,
        [keys.meta, keys.generation, keys.takers, keys.day_prefix],
        [step_field(batch_id, shard), *span, day, *users],
    )
    return int(reply[1]) if reply[0] == b"BEHIND" else None


def _issued_pages(
    services: Services, template: Any, batch_id: int, shard: int, start: int, end: int
) -> Iterator[tuple[int, list[str], datetime]]:
    """Pages of members with the users of each who got a coupon, and when; a page is of one step or a part of it."""
    while start < end:
        with transaction(services.engine) as connection:
            rows = connection.execute(
                _ISSUED,
                {
                    "template_id": template["template_id"],
                    "batch_no": batch_no(batch_id),
                    "batch_id": batch_id,
                    "shard": shard,
                    "from": start,
                    "to": end,
                    "page": PAGE,
                },
            ).all()
        if not rows:
            return
        at = next((row.claimed_at for row in rows if row.claimed_at is not None), services.clock())
        # A step over midnight: the days of its users differ.
        same = [row for row in rows if row.claimed_at is None or row.claimed_at == at]
        cut = next((row.member_no for row in rows if row.claimed_at not in (None, at)), None)
        page = [row for row in same if cut is None or row.member_no < cut]
        start = page[-1].member_no
        yield start, [row.user_id for row in page if row.claimed_at is not None], at


def forget_steps(services: Services, template_id: int) -> None:
    """Forget what was counted of the template's batches that ended so long ago that no step of them comes again.

    Raises ``StoreUnavailable``.
    """
    named = {"template_id": template_id, "before": services.clock() - KEPT, "most": FORGOTTEN_AT_ONCE}
    with transaction(services.engine) as connection:
        ended = connection.execute(_ENDED, named).all()
    fields = [step_field(batch.batch_id, shard) for batch in ended for shard in range(batch.shard_count)]
    if not fields:
        return
    try:
        services.redis.hdel(BucketKeys(template_id).meta, *fields)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
