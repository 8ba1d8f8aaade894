"""One client of a load: a thread that asks one thing at a time and writes down what it asked and what it heard."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.support.fault_plan import Step
from tests.support.history import History

TIMEOUT_S = 4.0
TRIES = 12
TRIES_REFUSED = 2
"""A request that was not heard of, or was asked to wait, is sent so often at most; then its client gives up."""

_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 0.8
_KEPT_HEADERS = ("retry-after", "content-type", "x-request-id")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was heard; ``status`` 0: nothing."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def claim_id(self) -> str:
        """The claim it names, else an empty text."""
        return str(self.body.get("claim_id") or "") if isinstance(self.body, dict) else ""

    @property
    def asks_for_patience(self) -> bool:
        """Whether the same question is to be asked again."""
        return self.status in (0, 429, 503)


UNHEARD = Answer(0, None, {})


class HistoryHttp:
    """Asks over one keep-alive connection; each question and each answer is a line of ``history``."""

    def __init__(self, port: int, key: str, history: History) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._history = history

    def ask(
        self, name: str, method: str, target: str, body: Any = None, *, key: str = "", deaf: bool = False
    ) -> Answer:
        """Ask once. ``key``: the ``Idempotency-Key`` of a write. ``deaf``: hang up as soon as the question is sent."""
        number = self._history.sends(name, body if isinstance(body, dict) else {"target": target})
        answer = self._exchange(method, target, body, {"Idempotency-Key": key} if key else {}, deaf)
        self._history.hears(number, answer.status, answer.body, answer.headers)
        return answer

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _exchange(self, method: str, target: str, body: Any, headers: dict[str, str], deaf: bool) -> Answer:
        payload = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, target, payload, self._headers | headers)
            if deaf:
                self._connection.close()
                return UNHEARD
            response = self._connection.getresponse()
            text = response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return UNHEARD
        kept = {name: value for name in _KEPT_HEADERS if (value := response.getheader(name)) is not None}
        with suppress(ValueError):
            return Answer(response.status, json.loads(text), kept)
        return Answer(response.status, text, kept)


class FaultClient(threading.Thread):
    """Carries out ``steps`` until ``stop`` is set, at ``rate`` steps a second at most."""

    def __init__(
        self, number: int, http_: HistoryHttp, steps: Iterator[Step], stop: threading.Event, rate: float
    ) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self._http = http_
        self._steps = steps
        self._stop_asked = stop
        self._gap_s = 1 / rate
        self._draw = random.Random(number)
        self._claims: deque[str] = deque(maxlen=50)

    def run(self) -> None:
        """Step by step; a client that is behind does not catch up in a burst."""
        due_s = time.monotonic() + self._draw.random() * self._gap_s
        for step in self._steps:
            if self._stop_asked.wait(max(0.0, due_s - time.monotonic())):
                break
            due_s = max(due_s + self._gap_s, time.monotonic() - self._gap_s)
            if step.name == "status":
                self._look()
            else:
                self._claim(step)
        self._http.close()

    def _claim(self, step: Step) -> None:
        pause_s = _PAUSE_S
        refused = 0
        for attempt in range(TRIES):
            answer = self._http.ask(step.name, "POST", "/v1/claims", step.body, deaf=step.deaf and attempt == 0)
            if answer.claim_id:
                self._claims.append(answer.claim_id)
            refused += answer.status in (429, 503)
            if not answer.asks_for_patience or refused == TRIES_REFUSED:
                return
            if self._stop_asked.wait(pause_s * (0.5 + self._draw.random())):
                return
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _look(self) -> None:
        if self._claims:
            claim_id = self._draw.choice(self._claims)
            self._http.ask("status", "GET", f"/v1/claims/{claim_id}")
