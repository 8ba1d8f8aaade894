"""Looking for kept pages over lean connections, one a thread: most reads of a wallet are this look and nothing else."""

from __future__ import annotations

import threading

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lean_redis import LeanConnection, pack
from coupon_workers.runtime.settings import Settings
from coupon_workers.wallet.wallet_cache import FILL_MS, Look, new_token, what_is_kept
from coupon_workers.wallet.wallet_key import wallet_key


class KeptWallets:
    """Threads may share it; each has its own connection."""

    def __init__(self, settings: Settings) -> None:
        if settings.redis_url is None:
            raise StoreUnavailable("Redis", "COUPON_REDIS_URL is not set and no embedded server runs")
        self._url = settings.redis_url.get_secret_value()
        self._timeout_ms = settings.redis_timeout_ms
        self._local = threading.local()

    def look(self, user_id: str) -> Look:
        """As ``wallet_cache.kept_wallet``."""
        connection: LeanConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = LeanConnection(self._url, self._timeout_ms)
        token = new_token()
        try:
            [page] = connection.ask([pack("SET", wallet_key(user_id), token, "PX", FILL_MS, "NX", "GET")])
        except StoreUnavailable:
            return None, None
        # An error is an answer too, of a Redis that is loading or full: as good as nothing kept.
        return what_is_kept(page, token) if page is None or isinstance(page, bytes) else (None, None)
