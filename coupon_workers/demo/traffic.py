"""Storefronts' calls of a full demo, many at a time: claims with their history, others with their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from coupon_workers.load.admin_call import AdminCall
from coupon_workers.load.admin_client import AdminClient
from coupon_workers.load.claim_call import ClaimCall
from coupon_workers.load.claim_client import ClaimClient
from coupon_workers.load.history import ClaimHistory
from coupon_workers.load.http_request import Address
from coupon_workers.load.order_call import OrderCall
from coupon_workers.load.order_client import OrderClient

SPREAD_S = 5.0
"""How long a crowd's calls are spread when processes are killed under them: some of each crowd are hit."""


class StoreCall(NamedTuple):
    """A draw or an exchange. ``who`` is its crowd in the report."""

    who: str
    target: str
    body: Mapping[str, Any]


class StoreAnswer(NamedTuple):
    """``status`` 0: never answered. ``body``: the JSON that was answered, empty without."""

    call: StoreCall
    status: int
    body: Mapping[str, Any]

    @property
    def code(self) -> str:
        """The problem's code; an empty text of a 2xx."""
        return str(self.body.get("code", "")) if self.status >= 400 else ""


class Traffic:
    """Over ``connections`` connections; what is lost is sent again, as each call bears it. ``spread``: see above."""

    def __init__(
        self, address: Address, *, connections: int, spread: bool, heard: Callable[[], None] = lambda: None
    ) -> None:
        self._claims = ClaimClient(address, connections=connections)
        self._address = address
        self._connections = connections
        self._spread = spread
        self._heard = heard

    @property
    def history(self) -> ClaimHistory:
        """Every claim so far."""
        return self._claims.history

    def claim(self, calls: Sequence[ClaimCall]) -> None:
        """Send claims and return when each has ended."""
        self._claims.run(calls, rate=self._rate(len(calls)), heard=self._heard)

    def send(self, calls: Sequence[StoreCall]) -> list[StoreAnswer]:
        """Send calls; their answers, in the order of ``calls``."""
        numbered = [OrderCall(number, 0, call.who, call.target, call.body) for number, call in enumerate(calls)]
        with OrderClient(self._address, connections=self._connections) as client:
            client.run(numbered, self._heard, rate=self._rate(len(calls)))
            ends = {each.call.life: each for each in client.heard}
        return [StoreAnswer(call, ends[n].status, _json(ends[n].body)) for n, call in enumerate(calls)]

    def operate(self, calls: Sequence[AdminCall]) -> None:
        """Send operators' calls amid the traffic. Raises ``UnexpectedAnswer`` when one is not a 2xx."""
        with AdminClient(self._address) as client:
            client.ask_all(calls)

    def close(self) -> None:
        """Close the connections; the history stays."""
        self._claims.close()

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rate(self, calls: int) -> float | None:
        return max(1.0, calls / SPREAD_S) if self._spread else None


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
