"""Order calls over HTTP, each answer kept: the steps of many coupons' lives, one round after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from coupon_workers.load.http_answer import Answer
from coupon_workers.load.http_connection import Exchange
from coupon_workers.load.http_driver import HttpDriver
from coupon_workers.load.http_request import Address, RequestForm
from coupon_workers.load.order_call import OrderCall
from coupon_workers.load.retry_policy import RetryPolicy

NO_ANSWER = 0


class HeardCall(NamedTuple):
    """A call and its end; ``status`` is ``NO_ANSWER`` when its outcome is unknown for good."""

    call: OrderCall
    status: int
    body: bytes
    attempts: int
    answer_ms: float


class OrderClient:
    """Sends order calls over ``connections`` connections. Lost ones are sent again: every call bears it."""

    def __init__(self, address: Address, *, connections: int = 32, policy: RetryPolicy | None = None) -> None:
        self._address = address
        self._driver = HttpDriver(address.host, address.port, connections=connections, policy=policy)
        self.heard: list[HeardCall] = []

    def run(
        self, calls: Iterable[OrderCall], heard: Callable[[], None] | None = None, *, rate: float | None = None
    ) -> None:
        """Send ``calls`` and return when each has ended; ``heard`` is called after each. ``rate``: calls a second,
        None: flat out."""

        def hear(exchange: Exchange, answer: Answer | None) -> None:
            assert isinstance(exchange.tag, OrderCall)
            self.heard.append(
                HeardCall(
                    exchange.tag,
                    NO_ANSWER if answer is None else answer.status,
                    b"" if answer is None else answer.body,
                    exchange.attempts,
                    (exchange.heard_s - exchange.sent_s) * 1000,
                )
            )
            if heard is not None:
                heard()

        self._driver.run(map(self._exchange, calls), hear, rate=rate)

    def close(self) -> None:
        """Close the connections; what was heard stays."""
        self._driver.close()

    def __enter__(self) -> OrderClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(self, call: OrderCall) -> Exchange:
        return Exchange(RequestForm(self._address, "POST", call.target).with_json(call.body), call)
