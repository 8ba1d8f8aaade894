"""Claims at a steady rate, whatever the answers take: an open loop, as customers are."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator

from bench.failure import BenchFailure
from bench.front import Front
from bench.stage import HOST
from coupon_workers.load.http_answer import Answer
from coupon_workers.load.http_connection import Exchange
from coupon_workers.load.http_driver import HttpDriver
from coupon_workers.load.http_request import Address, RequestForm
from coupon_workers.load.percentile import percentile

WATCHED_EACH = 20
"""One claim of so many is waited for by its client, who asks with ``?wait=``: enough for a p99, few enough to cost
little."""

CONNECTIONS = 128
"""Open loop: more than are ever in use, so that a slow answer does not delay the next question."""


class PacedClaims:
    """Claims at a steady rate; each so many-th client then asks for his claim and waits until it is issued."""

    def __init__(self, front: Front, template_id: int) -> None:
        self._front = front
        self._template_id = template_id
        self._mark = front.stage.mark()
        self._address = Address(HOST, front.port, front.stage.key)
        self._curious: deque[tuple[str, float]] = deque()  # claim id, when the 202 was heard
        self._answer_ms: list[float] = []
        self._told_ms: list[float] = []

    @property
    def accepted(self) -> int:
        """Claims that were answered 202."""
        return len(self._answer_ms)

    def run(self, rate: float, seconds: float) -> None:
        """Claim at ``rate`` a second. Raises ``BenchFailure`` for any answer but 202 and "issued"."""
        count = int(rate * seconds)
        with HttpDriver(HOST, self._front.port, connections=CONNECTIONS) as driver:
            questions = self._exchanges(count)
            driver.run(questions, self._hear, rate=rate * (1 + 1 / WATCHED_EACH), run_for_s=2 * seconds)
        if self.accepted < count:
            raise BenchFailure(f"{self.accepted} of {count} claims at {rate:.0f}/s were answered in {2 * seconds:g} s")

    def numbers(self) -> dict[str, float]:
        """Percentiles of the answer, and of the time from the 202 to the client's being told "issued"."""
        shown = {}
        for name, values in (("answer", sorted(self._answer_ms)), ("told", sorted(self._told_ms))):
            for percent in (50, 99):
                shown[f"{name}_p{percent}_ms"] = percentile(values, percent) or 0.0
        return shown

    def _exchanges(self, count: int) -> Iterator[Exchange]:
        form = RequestForm(self._address, "POST", "/v1/claims")
        for number in range(count):
            while self._curious:
                claim_id, heard_s = self._curious.popleft()
                question = RequestForm(self._address, "GET", f"/v1/claims/{claim_id}?wait=10").with_body()
                yield Exchange(question, heard_s)
            body = {
                "template_id": str(self._template_id),
                "user_id": f"u-{self._mark}-{number:07}",
                "request_id": f"order-form-{self._mark}-{number:07}",
            }
            yield Exchange(form.with_json(body), number)

    def _hear(self, exchange: Exchange, answer: Answer | None) -> None:
        if isinstance(exchange.tag, float):
            if answer is None or json.loads(answer.body).get("status") != "issued":
                raise BenchFailure(f"a claim that was accepted is not issued: {answer}")
            self._told_ms.append((exchange.heard_s - exchange.tag) * 1e3)
            return
        if answer is None or answer.status != 202:
            raise BenchFailure(f"a claim was answered {answer}")
        self._answer_ms.append((exchange.heard_s - exchange.first_sent_s) * 1e3)
        if self.accepted % WATCHED_EACH == 0:
            self._curious.append((json.loads(answer.body)["claim_id"], exchange.heard_s))
