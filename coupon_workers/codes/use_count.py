"""The gate counts whoever has used codes, each use once, as it counts the users of campaigns.

A batch of codes is to the gate what a shard is: its uses are numbered, and a field of ``meta`` says up to which they
were counted. A front that dies between the commit and this leaves a use behind: the next use counts it, or the sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import text

from coupon_workers.claiming.gate_step import step_field
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services
from coupon_workers.templates.local_day import local_day_number

PAGE = 1_000
"""Uses counted in one script."""

_USES = text(
    "SELECT use_no, user_id, used_at FROM code WHERE code_batch_id = :code_batch_id"
    " AND use_no > :from AND use_no <= :to ORDER BY use_no LIMIT :page"
)


def count_uses(services: Services, template: Any, code_batch_id: int, to: int) -> None:
    """Have the gate count the uses of a batch up to number ``to``, all of which are committed.

    ``template`` has ``template_id``, ``timezone`` and ``per_user_daily_limit``. Raises ``StoreUnavailable``: what was
    not counted is counted with the next use.
    """
    # Nobody is behind, as a rule, and then the first question, of the last use alone, is the last.
    start: int | None = max(0, to - 1)
    while start is not None and start < to:
        start = _count_from(services, template, code_batch_id, start, to)


def _count_from(services: Services, template: Any, code_batch_id: int, start: int, to: int) -> int | None:
    """Where to begin again, if the gate stands elsewhere; None when it has counted all of them."""
    for end, day, users in _pages(services, template, code_batch_id, start, to):
        behind = _count(services, template, code_batch_id, (start, end), day, users)
        if behind is not None:
            return behind
        start = end
    return None


def _pages(
    services: Services, template: Any, code_batch_id: int, start: int, to: int
) -> Iterator[tuple[int, int | str, list[str]]]:
    """Spans of uses of one local day: the last number of each, the day, the users."""
    while start < to:
        with transaction(services.engine) as connection:
            named = {"code_batch_id": code_batch_id, "from": start, "to": to, "page": PAGE}
            uses: Sequence[Any] = connection.execute(_USES, named).all()
        if not uses:
            return
        for day, group in groupby(uses, lambda use: _day(template, use)):
            span = list(group)
            start = span[-1].use_no
            yield start, day, [use.user_id for use in span]


def _day(template: Any, use: Any) -> int | str:
    return "" if template["per_user_daily_limit"] is None else local_day_number(use.used_at, template["timezone"])


def _count(
    services: Services, template: Any, code_batch_id: int, span: tuple[int, int], day: int | str, users: list[str]
) -> int | None:
    keys = BucketKeys(template["template_id"])
    reply = lua_script("count_takers")(
        services.redis,
        [keys.meta, keys.generation, keys.takers, keys.day_prefix],
        [step_field(code_batch_id, 0), *span, day, *users],
    )
    return int(reply[1]) if reply[0] == b"BEHIND" else None
