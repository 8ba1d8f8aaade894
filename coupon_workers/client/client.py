"""The client: one object a server and key, with the addresses in groups."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import httpx

from coupon_workers.client.back_office import BackOffice
from coupon_workers.client.batches import Batches
from coupon_workers.client.caller import Caller
from coupon_workers.client.claims import Claims
from coupon_workers.client.codes import Codes
from coupon_workers.client.exchange import Line
from coupon_workers.client.lotteries import Lotteries
from coupon_workers.client.operations import Operations
from coupon_workers.client.orders import Orders
from coupon_workers.client.retry_policy import RetryPolicy
from coupon_workers.client.risk import Risk
from coupon_workers.client.templates import Templates
from coupon_workers.client.wallet import Wallet


class CouponClient:
    """Calls the API at ``base_url`` with ``key``. Threads may share one; close it, or use it in a ``with``.

    ``signed``: the key demands signed requests. ``http``: a client of yours, for a proxy, certificates or a transport
    of your own; its base URL is used, and it is yours to close. ``clock``, ``sleep`` and ``draw`` are for tests.
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        signed: bool = False,
        retry: RetryPolicy | None = None,
        http: httpx.Client | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._own = httpx.Client(base_url=base_url) if http is None else None
        line = Line(self._own or http or httpx.Client(), key, signed=signed)
        caller = Caller(line, retry or RetryPolicy(), clock, sleep, draw)
        self.claims = Claims(caller)
        self.wallet = Wallet(caller)
        self.orders = Orders(caller)
        self.templates = Templates(caller)
        self.batches = Batches(caller)
        self.codes = Codes(caller)
        self.lotteries = Lotteries(caller)
        self.risk = Risk(caller)
        self.back_office = BackOffice(caller)
        self.operations = Operations(caller)

    def close(self) -> None:
        """End its connections."""
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
