"""The sweep over lotteries: forgotten bells, cold gates, late changes, and what is over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from redis.exceptions import RedisError
from sqlalchemy import text

from coupon_workers.claiming.gate_sweep import ASK_FOR_PREHEAT_MS, CHUNK, FORGOTTEN_MS, KEEP_AFTER_END, MANY_BELLS
from coupon_workers.claiming.pending import BELL_TTL_MS
from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.lottery_end import close_lottery, mark_ending
from coupon_workers.lottery.lottery_rules import sync_lottery
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import preheat_lottery, settle_draws

log = get_logger(__name__)

OPERATOR = "end of time"

_PAGE = text(
    "SELECT lottery_id, status, version, end_at, ended_at FROM lottery"
    f" WHERE gate_forgotten_at IS NULL AND lottery_id > :after ORDER BY lottery_id LIMIT {CHUNK}"
)
_FORGOTTEN = text("UPDATE lottery SET gate_forgotten_at = :now WHERE lottery_id = :lottery_id AND status = 'ended'")


class _Gate(NamedTuple):
    """A lottery's row and its keys as they were found. ``waited_ms``: of its oldest draw; None when nothing waits."""

    row: Any
    is_warm: bool
    version: int
    is_rung: bool
    waited_ms: int | None

    @property
    def lottery_id(self) -> int:
        """Whose gate it is."""
        return int(self.row.lottery_id)


def sweep_lotteries(services: Services, waiting_bells: int = 0) -> dict[str, int]:
    """One pass, safe at any time, by any number. ``waiting_bells`` are queued for the workers.

    Returns how often each was done: ``rung``, ``preheated``, ``synced``, ``ended``, ``forgotten``. Raises
    ``StoreUnavailable``.
    """
    done = dict.fromkeys(("rung", "preheated", "synced", "ended", "forgotten"), 0)
    after, now = 0, services.clock()
    while True:
        with transaction(services.engine) as connection:
            page = connection.execute(_PAGE, {"after": after}).all()
        if not page:
            return done
        after = page[-1].lottery_id
        for gate in _look(services, page):
            _look_after_gate(services, gate, waiting_bells, done)
            _look_after_end(services, gate, now, done)


def _look_after_gate(services: Services, gate: _Gate, waiting_bells: int, done: dict[str, int]) -> None:
    if not gate.is_warm:
        # What has ended is answered from the database.
        done["preheated"] += _ask_for_preheat(services, gate.lottery_id) if gate.row.status != "ended" else 0
    elif gate.version < gate.row.version:
        done["synced"] += 1
        sync_lottery(services, gate.lottery_id)
    forgotten = gate.waited_ms is not None and (not gate.is_rung or gate.waited_ms > FORGOTTEN_MS)
    if forgotten and waiting_bells + done["rung"] < MANY_BELLS:
        done["rung"] += 1
        _ring(services, gate)


def _look_after_end(services: Services, gate: _Gate, now: datetime, done: dict[str, int]) -> None:
    row = gate.row
    if row.status in ("pending_approval", "open", "paused") and row.end_at <= now:
        with transaction(services.engine) as connection:
            mark_ending(connection, row.lottery_id, OPERATOR, now)
        done["ended"] += close_lottery(services, row.lottery_id)
    elif row.status == "ending":
        done["ended"] += close_lottery(services, row.lottery_id)
    elif row.status == "ended" and row.ended_at + KEEP_AFTER_END <= now and gate.waited_ms is None:
        done["forgotten"] += 1
        _forget(services, row.lottery_id, now)


def _forget(services: Services, lottery_id: int, now: datetime) -> None:
    """The gate is shut and nothing waits: from here on requests are answered from the database."""
    keys = LotteryKeys(lottery_id)
    names = (keys.generation, keys.meta, keys.stock, keys.takers, keys.requests, keys.pending, keys.bell, keys.told)
    try:
        services.redis.unlink(*names)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    with transaction(services.engine) as connection:
        connection.execute(_FORGOTTEN, {"lottery_id": lottery_id, "now": now})


def _ask_for_preheat(services: Services, lottery_id: int) -> int:
    """Once in a while: a preheat takes its time, and those that wait behind it would do its work again."""
    try:
        asked = services.redis.set(LotteryKeys(lottery_id).mending, "1", px=ASK_FOR_PREHEAT_MS, nx=True)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    if asked:
        services.post.send(preheat_lottery(lottery_id))
    return 1 if asked else 0


def _ring(services: Services, gate: _Gate) -> None:
    """Ring first, then mark: a mark without a ring would silence the lottery until it expires."""
    services.post.send(settle_draws(gate.lottery_id))
    try:
        services.redis.set(LotteryKeys(gate.lottery_id).bell, "1", px=BELL_TTL_MS)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    log.info("forgotten bell rung", lottery_id=gate.lottery_id, waited_ms=gate.waited_ms)


def _look(services: Services, page: Sequence[Any]) -> list[_Gate]:
    pipeline = services.redis.pipeline(transaction=False)
    for row in page:
        keys = LotteryKeys(row.lottery_id)
        pipeline.exists(keys.generation)
        pipeline.hget(keys.meta, "version")
        pipeline.exists(keys.bell)
        pipeline.xrange(keys.pending, count=1)
    pipeline.time()
    try:
        *replies, (now_s, now_us) = pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    now_ms = now_s * 1000 + now_us // 1000
    found = zip(page, replies[0::4], replies[1::4], replies[2::4], replies[3::4], strict=True)
    return [
        _Gate(row, bool(warm), int(version or 0), bool(rung), _waited_ms(head, now_ms))
        for row, warm, version, rung, head in found
    ]


def _waited_ms(head: list[tuple[bytes, Any]], now_ms: int) -> int | None:
    return now_ms - int(head[0][0].split(b"-")[0]) if head else None
