"""Operators' calls, many at a time: two thousand templates are made in seconds, not minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from coupon_workers.load.admin_call import AdminCall
from coupon_workers.load.http_answer import Answer
from coupon_workers.load.http_connection import Exchange
from coupon_workers.load.http_driver import HttpDriver
from coupon_workers.load.http_request import Address
from coupon_workers.load.retry_policy import RetryPolicy

_PATIENT = RetryPolicy(timeout_s=20.0, give_up_s=60.0)
"""Publishing preheats, which may take a while on a large template."""


class AdminClient:
    """Sends ``AdminCall``s over ``connections`` connections."""

    def __init__(self, address: Address, *, connections: int = 4, policy: RetryPolicy = _PATIENT) -> None:
        self._address = address
        self._driver = HttpDriver(address.host, address.port, connections=connections, policy=policy)

    def ask(self, call: AdminCall) -> Any:
        """The JSON of the answer. Raises ``UnexpectedAnswer`` unless it is a 2xx."""
        return self.ask_all([call])[0]

    def ask_all(self, calls: Sequence[AdminCall], heard: Callable[[], None] | None = None) -> list[Any]:
        """The JSON of each answer, in the order of ``calls``; ``heard`` is called after each.

        Raises ``UnexpectedAnswer`` when one is not a 2xx; the others have been sent all the same.
        """
        answers: dict[AdminCall | int, Answer | None] = {}

        def hear(exchange: Exchange, answer: Answer | None) -> None:
            answers[id(exchange.tag)] = answer
            if heard is not None:
                heard()

        self._driver.run((call.exchange(self._address) for call in calls), hear)
        return [call.result(answers[id(call)]) for call in calls]

    def close(self) -> None:
        """Close the connections."""
        self._driver.close()

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
