"""A cheap HTTP/1.1 load driver: one thread, many keep-alive connections, every lost answer asked again.

It must never be the bottleneck of what it measures: an exchange costs one send, one receive and a few dictionary-free
steps of Python.
"""

from __future__ import annotations

import heapq
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from coupon_workers.load.http_answer import Answer, MalformedAnswer
from coupon_workers.load.http_connection import Exchange, HttpConnection
from coupon_workers.load.retry_policy import RetryPolicy

Hear = Callable[[Exchange, Answer | None], None]
"""Told the end of each exchange; None: given up, its outcome is unknown."""

_IDLE_WAIT_S = 0.5


class HttpDriver:
    """Drives exchanges over at most ``connections`` connections to ``host:port``."""

    def __init__(self, host: str, port: int, *, connections: int = 1, policy: RetryPolicy | None = None) -> None:
        self._policy = policy or RetryPolicy()
        self._selector = selectors.DefaultSelector()
        self._connections = [HttpConnection(self._selector, (host, port)) for _ in range(connections)]
        self._idle = list(self._connections)
        self._later: list[tuple[float, int, Exchange]] = []  # heap of exchanges that wait for their next try
        self._order = count()
        self._watch: deque[tuple[float, HttpConnection, Exchange, int]] = deque()  # time-outs, soonest first
        self._hear: Hear = lambda exchange, answer: None

    def run(
        self,
        exchanges: Iterable[Exchange],
        hear: Hear,
        *,
        rate: float | None = None,
        run_for_s: float | None = None,
    ) -> None:
        """Send every exchange and return when each has ended.

        ``rate``: exchanges begun a second, None: flat out. ``run_for_s``: after this long no new exchange begins.
        ``exchanges`` is read as connections come free, so it may depend on what was heard.
        """
        self._hear = hear
        source = iter(exchanges)
        pace = _Pace(rate, run_for_s)
        more = True
        while True:
            now = time.monotonic()
            self._begin_again(now)
            more = self._begin(source, pace, now) if more else False
            if not more and not self._later and len(self._idle) == len(self._connections):
                return
            for key, _ in self._selector.select(self._wait_s(now, pace if more else None)):
                self._advance(key.data)
            self._time_out(time.monotonic())

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections:
            connection.close()
        self._selector.close()

    def __enter__(self) -> HttpDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, source: Iterator[Exchange], pace: _Pace, now: float) -> bool:
        """Begin what the pace and the free connections allow; False when the source has ended.

        An exchange that waits for its next try holds a connection's place: a server that is away stops the load.
        """
        while len(self._idle) > len(self._later):
            if pace.is_over(now):
                return False
            if not pace.allows(now):
                return True
            exchange = next(source, None)
            if exchange is None:
                return False
            exchange.first_sent_s = time.monotonic()
            self._send(exchange)
        return True

    def _begin_again(self, now: float) -> None:
        while self._idle and self._later and self._later[0][0] <= now:
            self._send(heapq.heappop(self._later)[2])

    def _send(self, exchange: Exchange) -> None:
        connection = self._idle.pop()
        exchange.attempts += 1
        exchange.sent_s = time.monotonic()
        self._watch.append((exchange.sent_s + self._policy.timeout_s, connection, exchange, exchange.attempts))
        try:
            connection.send(exchange)
        except OSError:
            self._lost(connection)

    def _advance(self, connection: HttpConnection) -> None:
        try:
            answer = connection.advance()
        except (OSError, MalformedAnswer):
            self._lost(connection)
            return
        if answer is None:
            return
        exchange, connection.exchange = connection.exchange, None
        if exchange is None:
            connection.close()
            return
        self._idle.append(connection)
        exchange.heard_s = time.monotonic()
        if answer.retry_after_s is not None and answer.status in exchange.retry_on:
            wait_s = self._policy.after_refusal_s(answer.retry_after_s)
            if self._is_put_off(exchange, wait_s):
                return
        self._hear(exchange, answer)

    def _lost(self, connection: HttpConnection) -> None:
        """The connection broke: whether its request had an effect is unknown, so the same is sent again."""
        connection.close()
        exchange, connection.exchange = connection.exchange, None
        if exchange is None:
            return
        self._idle.append(connection)
        if not self._is_put_off(exchange, self._policy.after_loss_s(exchange.attempts)):
            exchange.heard_s = time.monotonic()
            self._hear(exchange, None)

    def _is_put_off(self, exchange: Exchange, wait_s: float) -> bool:
        """Whether there is time for one more try, which is then noted."""
        due_s = time.monotonic() + wait_s
        if due_s > exchange.first_sent_s + self._policy.give_up_s:
            return False
        heapq.heappush(self._later, (due_s, next(self._order), exchange))
        return True

    def _time_out(self, now: float) -> None:
        while self._watch:
            deadline_s, connection, exchange, attempt = self._watch[0]
            waiting = connection.exchange is exchange and exchange.attempts == attempt
            if waiting and deadline_s > now:
                return
            self._watch.popleft()
            if waiting:
                self._lost(connection)

    def _wait_s(self, now: float, pace: _Pace | None) -> float:
        """How long nothing is due."""
        wait_s = _IDLE_WAIT_S
        if self._idle and self._later:
            wait_s = min(wait_s, self._later[0][0] - now)
        if pace is not None and len(self._idle) > len(self._later):
            wait_s = min(wait_s, pace.next_s - now)
        return max(0.0, wait_s)


class _Pace:
    """When the next exchange may begin: evenly spread, without bursts after a stall longer than a second."""

    def __init__(self, rate: float | None, run_for_s: float | None) -> None:
        now = time.monotonic()
        self._gap_s = 1 / rate if rate else 0.0
        self._end_s = now + run_for_s if run_for_s is not None else float("inf")
        self.next_s = now

    def is_over(self, now: float) -> bool:
        return now >= self._end_s

    def allows(self, now: float) -> bool:
        if self._gap_s == 0.0:
            return True
        if now < self.next_s:
            return False
        self.next_s = max(self.next_s, now - 1.0) + self._gap_s
        return True
