"""How a gate looks to a sweep, and what helps it: the same of templates' gates and of lotteries'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import redis
from redis.exceptions import RedisError

from coupon_workers.claiming.pending import BELL_TTL_MS
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.gate_keys import GateKeys
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import Task

FORGOTTEN_MS = 3_000
"""What has waited this long while hardly a bell is queued has been forgotten: its bell was lost."""

MANY_BELLS = 50
"""With so many bells in the queue the workers are busy, not deaf: one more bell would only wait behind the others."""

ASK_FOR_PREHEAT_MS = 5_000


class Pulse(NamedTuple):
    """A gate's keys as they were found. ``waited_ms``: how long the oldest entry of its stream has waited, None when
    nothing is pending."""

    is_warm: bool
    version: int
    is_rung: bool
    waited_ms: int | None

    @property
    def is_forgotten(self) -> bool:
        """Something waits, and nobody is about to settle it."""
        return self.waited_ms is not None and (not self.is_rung or self.waited_ms > FORGOTTEN_MS)


def read_pulses(client: redis.Redis, gates: Sequence[GateKeys]) -> list[Pulse]:
    """One of each gate, in one round trip. Raises ``StoreUnavailable``."""
    pipeline = client.pipeline(transaction=False)
    for keys in gates:
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
    return [
        Pulse(bool(warm), int(version or 0), bool(rung), _waited_ms(head, now_ms))
        for warm, version, rung, head in zip(replies[0::4], replies[1::4], replies[2::4], replies[3::4], strict=True)
    ]


def _waited_ms(head: list[tuple[bytes, Any]], now_ms: int) -> int | None:
    return now_ms - int(head[0][0].split(b"-")[0]) if head else None


def ask_for_preheat(services: Services, keys: GateKeys, preheat: Task) -> bool:
    """Whether it was asked for. Once in a while: a preheat takes its time, and those that wait behind it would do its
    work again. Raises ``StoreUnavailable``."""
    try:
        is_asked = bool(services.redis.set(keys.mending, "1", px=ASK_FOR_PREHEAT_MS, nx=True))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    if is_asked:
        services.post.send(preheat)
    return is_asked


def ring_again(services: Services, keys: GateKeys, bell: Task) -> None:
    """Ring first, then mark: a mark without a ring would silence the gate until it expires.

    Raises ``StoreUnavailable``.
    """
    services.post.send(bell)
    try:
        services.redis.set(keys.bell, "1", px=BELL_TTL_MS)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
