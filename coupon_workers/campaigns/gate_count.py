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
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services
from coupon_workers.templates.local_day import local_day_number

PIECE = 200
"""Users counted in one script: a fraction of a millisecond of Redis's time, after which it has time for claims."""

PAGE = 2_000
"""Members read at once, where others have not counted theirs."""

Given = tuple[Sequence[tuple[int, str]], datetime]
"""Who got a coupon, by member and user in the order of the members, and when."""

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
    given: Given,
) -> None:
    """Have the gate count the users of a step: members after ``span[0]`` up to ``span[1]``, of whom those in ``given``
    got a coupon. ``template`` has ``template_id``, ``timezone`` and ``per_user_daily_limit``.

    Raises ``StoreUnavailable``: the next step of the shard counts them.
    """
    behind = _count(services, template, batch_id, shard, span, given)
    while behind is not None:
        start, behind = behind, None
        for to, page in _given_pages(services, template, batch_id, shard, start, span[1]):
            behind = _count(services, template, batch_id, shard, (start, to), page)
            if behind is not None:
                break
            start = to


def _count(
    services: Services, template: Any, batch_id: int, shard: int, span: tuple[int, int], given: Given
) -> int | None:
    """Count a span in pieces, each once; the member from which on must be counted first, if it is not its turn."""
    keys, (members, at) = BucketKeys(template["template_id"]), given
    day = "" if template["per_user_daily_limit"] is None else local_day_number(at, template["timezone"])
    start = span[0]
    for to, users in _pieces(members, span[1]):
        reply = lua_script("count_takers")(
            services.redis,
            [keys.meta, keys.generation, keys.takers, keys.day_prefix],
            [step_field(batch_id, shard), start, to, day, *users],
        )
        if reply[0] == b"BEHIND":
            return int(reply[1])
        crash_point("campaign.amid_count")
        start = to
    return None


def _pieces(members: Sequence[tuple[int, str]], end: int) -> Iterator[tuple[int, list[str]]]:
    """Parts of a span, each with the member up to which it goes: the last one, or the only one, up to ``end``."""
    for first in range(0, max(1, len(members)), PIECE):
        piece = members[first : first + PIECE]
        last = first + PIECE >= len(members)
        yield end if last else piece[-1][0], [user for _, user in piece]


def _given_pages(
    services: Services, template: Any, batch_id: int, shard: int, start: int, end: int
) -> Iterator[tuple[int, Given]]:
    """Pages of members, each of one step or a part of it: up to which member it goes, and who got a coupon."""
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
        yield start, ([(row.member_no, row.user_id) for row in page if row.claimed_at is not None], at)


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
