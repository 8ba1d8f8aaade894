"""When a call is sent again: what became of it is unknown, or the server asked for patience."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """All in seconds.

    ``timeout_s``: for one attempt. ``deadline_s``: for a call with all its attempts and waits; no attempt begins after
    it. ``backoff_s``: the longest wait before the second attempt, doubled with each one up to ``backoff_cap_s``.
    """

    timeout_s: float = 10.0
    deadline_s: float = 30.0
    backoff_s: float = 0.1
    backoff_cap_s: float = 5.0

    def wait_s(self, attempts: int, draw: float, retry_after_s: float | None) -> float:
        """The wait after so many ``attempts``: a random share (``draw``, from 0 to 1) of the backoff, so that callers
        who failed together do not come back together; on top of what the server asked for, if it did."""
        backoff_s = min(self.backoff_cap_s, self.backoff_s * 2.0 ** min(attempts - 1, 16))
        return (retry_after_s or 0.0) + draw * backoff_s
