"""An outage is told twice, however often it is met: when it begins, and when it is over."""

from __future__ import annotations

import time

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.structured_log import get_logger

_log = get_logger(__name__)


class OutageLog:
    """Remembers which stores are away."""

    def __init__(self) -> None:
        self._since_s: dict[str, float] = {}

    def away(self, error: StoreUnavailable) -> None:
        """``error.store`` did not answer: logged the first time."""
        if error.store not in self._since_s:
            self._since_s[error.store] = time.monotonic()
            _log.warning("store_is_away", store=error.store, error=str(error))

    def back(self, store: str) -> None:
        """``store`` answered: logged when it had been away."""
        since_s = self._since_s.pop(store, None)
        if since_s is not None:
            _log.info("store_is_back", store=store, away_s=round(time.monotonic() - since_s, 1))
