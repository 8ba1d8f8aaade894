"""The services of a worker process, made at the first message, after the fork."""

from __future__ import annotations

from functools import lru_cache

import dramatiq

from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import settings


@lru_cache(maxsize=1)
def services() -> Services:
    """One set for all threads of this process."""
    return make_services(settings(), broker=dramatiq.get_broker())
