"""What each client sent and heard, in columns: a million calls in some tens of megabytes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from coupon_workers.load.claim_call import ClaimCall

NO_ANSWER = 0
"""The status of a call that was given up: whether it had an effect is unknown."""


class HeardClaim(NamedTuple):
    """One call with its answer.

    ``word``: the claim's status of a 2xx, else the ``code`` of the problem and the ``rule`` it names, if any, else an
    empty text. ``claim_id``: 0 without one. ``first_sent_ms``, ``sent_ms`` (the try that was answered) and ``heard_ms``
    are milliseconds of one monotonic clock. ``attempts``: how often it was sent.
    """

    call: ClaimCall
    status: int
    word: str
    claim_id: int
    first_sent_ms: float
    sent_ms: float
    heard_ms: float
    attempts: int


class ClaimHistory:
    """Calls in the order in which their ends were heard."""

    def __init__(self) -> None:
        self._calls: list[ClaimCall] = []
        self._words: dict[str, int] = {"": 0}
        self._status = array("H")
        self._word = array("H")
        self._claim_id = array("q")
        self._first_sent_ms = array("d")
        self._sent_ms = array("d")
        self._heard_ms = array("d")
        self._attempts = array("L")

    def add(self, heard: HeardClaim) -> None:
        """Write one line."""
        self._calls.append(heard.call)
        self._status.append(heard.status)
        self._word.append(self._words.setdefault(heard.word, len(self._words)))
        self._claim_id.append(heard.claim_id)
        self._first_sent_ms.append(heard.first_sent_ms)
        self._sent_ms.append(heard.sent_ms)
        self._heard_ms.append(heard.heard_ms)
        self._attempts.append(heard.attempts)

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[HeardClaim]:
        words = list(self._words)
        columns = zip(
            self._calls,
            self._status,
            self._word,
            self._claim_id,
            self._first_sent_ms,
            self._sent_ms,
            self._heard_ms,
            self._attempts,
            strict=True,
        )
        for call, status, word, claim_id, first_sent_ms, sent_ms, heard_ms, attempts in columns:
            yield HeardClaim(call, status, words[word], claim_id, first_sent_ms, sent_ms, heard_ms, attempts)
