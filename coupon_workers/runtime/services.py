"""Everything a use case needs, made once a process and handed in: no globals, no look-ups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import redis
from sqlalchemy import Engine

from coupon_workers.runtime.clock import Clock
from coupon_workers.runtime.lean_redis import LeanThreads
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.task import Post

NextId = Callable[[int], int]
"""Given a route (see ``runtime/snowflake.py``), a new identity: a positive integer below 2**63."""


@dataclass(frozen=True, slots=True)
class Services:
    """The connections and clocks of one process. Made after a fork, never shared across one.

    ``lean`` leads to the same server as ``redis``, for what is asked with nearly every call.
    """

    settings: Settings
    engine: Engine
    redis: redis.Redis
    post: Post
    next_id: NextId
    clock: Clock
    lean: LeanThreads
