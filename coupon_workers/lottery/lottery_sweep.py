"""The sweep over lotteries: forgotten bells, cold gates, late changes, and what is over."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import text

from coupon_workers.claiming.gate_pulse import MANY_BELLS, Pulse, ask_for_preheat, read_pulses, ring_again
from coupon_workers.claiming.gate_sweep import CHUNK, KEEP_AFTER_END
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
    " WHERE gate_forgotten_at IS NULL AND lottery_id > :after ORDER BY lottery_id LIMIT :chunk"
)
_FORGOTTEN = text("UPDATE lottery SET gate_forgotten_at = :now WHERE lottery_id = :lottery_id AND status = 'ended'")


def sweep_lotteries(services: Services, waiting_bells: int = 0) -> dict[str, int]:
    """One pass, safe at any time, by any number. ``waiting_bells`` are queued for the workers.

    Returns how often each was done: ``rung``, ``preheated``, ``synced``, ``ended``, ``forgotten``. Raises
    ``StoreUnavailable``.
    """
    done = dict.fromkeys(("rung", "preheated", "synced", "ended", "forgotten"), 0)
    after, now = 0, services.clock()
    while True:
        with transaction(services.engine) as connection:
            page = connection.execute(_PAGE, {"after": after, "chunk": CHUNK}).all()
        if not page:
            return done
        after = page[-1].lottery_id
        pulses = read_pulses(services.redis, [LotteryKeys(row.lottery_id) for row in page])
        for row, pulse in zip(page, pulses, strict=True):
            _look_after_gate(services, row, pulse, waiting_bells, done)
            _look_after_end(services, row, pulse, now, done)


def _look_after_gate(services: Services, row: Any, pulse: Pulse, waiting_bells: int, done: dict[str, int]) -> None:
    keys = LotteryKeys(row.lottery_id)
    if not pulse.is_warm:
        if row.status != "ended":  # what has ended is answered from the database
            done["preheated"] += ask_for_preheat(services, keys, preheat_lottery(row.lottery_id))
    elif pulse.version < row.version:
        done["synced"] += 1
        sync_lottery(services, row.lottery_id)
    if pulse.is_forgotten and waiting_bells + done["rung"] < MANY_BELLS:
        done["rung"] += 1
        ring_again(services, keys, settle_draws(row.lottery_id))
        log.info("forgotten bell rung", lottery_id=row.lottery_id, waited_ms=pulse.waited_ms)


def _look_after_end(services: Services, row: Any, pulse: Pulse, now: datetime, done: dict[str, int]) -> None:
    if row.status in ("pending_approval", "open", "paused") and row.end_at <= now:
        with transaction(services.engine) as connection:
            mark_ending(connection, row.lottery_id, OPERATOR, now)
        done["ended"] += close_lottery(services, row.lottery_id)
    elif row.status == "ending":
        done["ended"] += close_lottery(services, row.lottery_id)
    elif row.status == "ended" and row.ended_at + KEEP_AFTER_END <= now and pulse.waited_ms is None:
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
