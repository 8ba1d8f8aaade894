"""When a request is sent again: the outcome of the first try is unknown, or the server asked for patience."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """All in seconds.

    ``timeout_s``: wait for one answer. ``give_up_s``: from the first send of a request to the last try.
    ``retry_after_cap_s``: the longest wait a ``Retry-After`` is granted, so that a load ends in time.
    ``backoff_s``: wait after a lost connection, doubled with each try up to ``backoff_cap_s``.
    """

    timeout_s: float = 5.0
    give_up_s: float = 60.0
    retry_after_cap_s: float = 1.0
    backoff_s: float = 0.02
    backoff_cap_s: float = 0.5

    def after_loss_s(self, attempts: int) -> float:
        """The wait before the next try when ``attempts`` tries were lost."""
        return min(self.backoff_cap_s, self.backoff_s * 2.0 ** min(attempts - 1, 16))

    def after_refusal_s(self, retry_after_s: float) -> float:
        """The wait before the next try when the server asked for ``retry_after_s``."""
        return min(self.retry_after_cap_s, retry_after_s)
