"""Claims over HTTP at a peak, each answer written down (API.md, Claims; FAULTS.md, the harness)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from coupon_workers.load.admin_call import AdminCall
from coupon_workers.load.claim_call import ClaimCall
from coupon_workers.load.history import NO_ANSWER, ClaimHistory, HeardClaim
from coupon_workers.load.http_answer import Answer
from coupon_workers.load.http_connection import Exchange
from coupon_workers.load.http_driver import HttpDriver
from coupon_workers.load.http_request import Address, RequestForm
from coupon_workers.load.retry_policy import RetryPolicy

HearAdmin = Callable[[AdminCall, Answer | None], None]


class ClaimClient:
    """Sends claims over ``connections`` connections and keeps their history.

    A lost connection or a time-out leaves the outcome unknown: the same request id is sent again. A 503 is sent again
    after its ``Retry-After``. Operators' calls may stand between the claims (a pause in the middle of a sale).
    """

    def __init__(self, address: Address, *, connections: int = 32, policy: RetryPolicy | None = None) -> None:
        self._address = address
        self._form = RequestForm(address, "POST", "/v1/claims")
        self._driver = HttpDriver(address.host, address.port, connections=connections, policy=policy)
        self.history = ClaimHistory()

    def run(
        self,
        calls: Iterable[ClaimCall | AdminCall],
        *,
        rate: float | None = None,
        run_for_s: float | None = None,
        heard: Callable[[], None] | None = None,
        hear_admin: HearAdmin | None = None,
    ) -> None:
        """Send ``calls`` and return when each has ended.

        ``rate``: calls a second, None: flat out. ``run_for_s``: no call begins after it. ``heard`` is called after each
        claim's end, ``hear_admin`` with each operator's call and its answer.
        """

        def hear(exchange: Exchange, answer: Answer | None) -> None:
            if isinstance(exchange.tag, ClaimCall):
                self.history.add(_heard_claim(exchange, exchange.tag, answer))
                if heard is not None:
                    heard()
            elif isinstance(exchange.tag, AdminCall) and hear_admin is not None:
                hear_admin(exchange.tag, answer)

        self._driver.run(self._exchanges(calls), hear, rate=rate, run_for_s=run_for_s)

    def close(self) -> None:
        """Close the connections; the history stays."""
        self._driver.close()

    def __enter__(self) -> ClaimClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchanges(self, calls: Iterable[ClaimCall | AdminCall]) -> Iterator[Exchange]:
        for call in calls:
            if isinstance(call, AdminCall):
                yield call.exchange(self._address)
            else:
                yield Exchange(self._form.with_json(call.body), call)


def _heard_claim(exchange: Exchange, call: ClaimCall, answer: Answer | None) -> HeardClaim:
    word, claim_id = ("", 0) if answer is None else _word_and_claim_id(answer)
    return HeardClaim(
        call,
        NO_ANSWER if answer is None else answer.status,
        word,
        claim_id,
        exchange.first_sent_s * 1000,
        exchange.sent_s * 1000,
        exchange.heard_s * 1000,
        exchange.attempts,
    )


def _word_and_claim_id(answer: Answer) -> tuple[str, int]:
    """What the body says; an answer that is not the contract's JSON has no word."""
    try:
        body = json.loads(answer.body)
    except ValueError:
        return "", 0
    if not isinstance(body, dict):
        return "", 0
    if not 200 <= answer.status < 300:
        return " ".join(str(body[name]) for name in ("code", "rule") if body.get(name)), 0
    claim_id = body.get("claim_id")
    return str(body.get("status", "")), int(claim_id) if isinstance(claim_id, str) and claim_id.isdigit() else 0
