"""DESIGN 3 and 11: a lottery's gate has left what the books have, less what waits, and remembers each draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from sqlalchemy import text

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.gate_reading import CHUNK, chunks, gate_errors, hash_fields
from coupon_workers.checking.patience import PATIENCE_S, looks
from coupon_workers.checking.reading import rows, snapshot
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.pending_draw import PendingDraw, read_pending
from coupon_workers.runtime.services import Services

RULE = "lottery_gate"

_WARM = "SELECT lottery_id FROM lottery WHERE status <> 'ended' ORDER BY lottery_id"
_LEFT = text("SELECT prize_no, left_quantity FROM prize WHERE lottery_id = :lottery_id ORDER BY prize_no")
_KNOWN = text("SELECT draw_id FROM draw WHERE lottery_id = :lottery_id AND draw_id = ANY(CAST(:ids AS bigint[]))")
_DRAWN = text(
    "SELECT user_id, count(*) AS draws FROM draw WHERE lottery_id = :lottery_id AND reason IS NULL"
    " AND user_id = ANY(CAST(:users AS text[])) GROUP BY user_id"
)
_SETTLED = text(
    "SELECT draw_id, user_id, request_id, prize_no, reason FROM draw WHERE lottery_id = :lottery_id"
    " AND draw_id > :after AND reason IS DISTINCT FROM 'DUPLICATE' ORDER BY draw_id LIMIT :page"
)


class _Mark(NamedTuple):
    """Two equal marks mean that nothing was drawn or settled between them."""

    generation: bytes | None
    pending: int
    requests: int
    stock: dict[int, int]


def lottery_gate(services: Services, patience_s: float = PATIENCE_S) -> list[Breach]:
    """Warm lotteries whose gate differs from the books. One under traffic is read again until it holds still for the
    length of one reading, and is not judged if it never does. Raises ``StoreUnavailable``."""
    broken: dict[int, list[Breach]] = {row.lottery_id: [] for row in rows(services, _WARM)}
    for _ in looks(patience_s):
        for lottery_id in list(broken):
            found = _differences(services, LotteryKeys(lottery_id))
            if found == []:
                del broken[lottery_id]
            else:
                broken[lottery_id] = found or []
        if not broken:
            break
    return [breach for found in broken.values() for breach in found][:BREACH_LIMIT]


def _differences(services: Services, keys: LotteryKeys) -> list[Breach] | None:
    """What differs; None where something moved meanwhile."""
    before = _mark(services, keys)
    if before.generation is None:
        return []
    pending, _ = read_pending(services.redis, keys, before.pending + CHUNK)
    with snapshot(services) as connection:
        left = {row.prize_no: row.left_quantity for row in connection.execute(_LEFT, {"lottery_id": keys.lottery_id})}
        asked = {"lottery_id": keys.lottery_id, "ids": [draw.draw_id for draw in pending]}
        known = set(connection.scalars(_KNOWN, asked))
    queued = [draw for draw in pending if draw.draw_id not in known]
    taken = Counter(draw.prize_no for draw in queued)
    found = [
        Breach(
            RULE,
            f"lottery {keys.lottery_id} prize {prize_no}",
            f"{left[prize_no]} left",
            f"{before.stock.get(prize_no, 0)} in stock + {taken[prize_no]} queued",
        )
        for prize_no in left
        if before.stock.get(prize_no, 0) + taken[prize_no] != left[prize_no]
    ]
    found += islice(chain(_wrong_takers(services, keys, queued), _forgotten(services, keys)), BREACH_LIMIT)
    return found if _mark(services, keys) == before else None


def _mark(services: Services, keys: LotteryKeys) -> _Mark:
    pipeline = services.redis.pipeline(transaction=True)
    pipeline.get(keys.generation)
    pipeline.xlen(keys.pending)
    pipeline.hlen(keys.requests)
    pipeline.hgetall(keys.stock)
    with gate_errors():
        generation, pending, requests, stock = pipeline.execute()
    return _Mark(generation, pending, requests, {int(prize_no): int(left) for prize_no, left in stock.items()})


def _wrong_takers(services: Services, keys: LotteryKeys, queued: list[PendingDraw]) -> Iterator[Breach]:
    waiting = Counter(draw.user_id for draw in queued)
    for chunk in chunks(hash_fields(services.redis, [keys.takers])):
        counted = {user_id: int(draws) for _, user_id, draws in chunk}
        with snapshot(services) as connection:
            found = connection.execute(_DRAWN, {"lottery_id": keys.lottery_id, "users": list(counted)})
            drawn = {row.user_id: row.draws for row in found}
        for user_id, draws in counted.items():
            expected = drawn.get(user_id, 0) + waiting[user_id]
            if draws != expected:
                yield Breach(RULE, f"lottery {keys.lottery_id} user {user_id}", f"{expected} draws", f"{draws}")


def _forgotten(services: Services, keys: LotteryKeys) -> Iterator[Breach]:
    for page in _settled(services, keys.lottery_id):
        pipeline = services.redis.pipeline(transaction=False)
        for row in page:
            pipeline.hget(keys.requests, f"{row.user_id} {row.request_id}")
            pipeline.hexists(keys.takers, row.user_id)
        with gate_errors():
            replies = pipeline.execute()
        for row, memory, counted in zip(page, replies[0::2], replies[1::2], strict=True):
            subject = f"lottery {keys.lottery_id} user {row.user_id} request {row.request_id}"
            told = (memory or b"forgotten").decode()
            # Between the commit and the acknowledgement it is still called queued.
            ends = [f"{row.draw_id} {row.prize_no} {state}" for state in (row.reason or "settled", "queued")]
            if told not in ends:
                yield Breach(RULE, subject, ends[0], told)
            if row.reason is None and not counted:
                yield Breach(RULE, subject, "a user who is counted", "nobody")


def _settled(services: Services, lottery_id: int) -> Iterator[list[Any]]:
    after = 0
    while True:
        with snapshot(services) as connection:
            named = {"lottery_id": lottery_id, "after": after, "page": CHUNK}
            page = list(connection.execute(_SETTLED, named))
        if not page:
            return
        after = page[-1].draw_id
        yield page
