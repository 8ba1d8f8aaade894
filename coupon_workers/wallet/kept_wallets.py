"""Looking for kept pages, and forgetting one, over lean connections: most reads of a wallet are this look and nothing
else, and every change of an order forgets."""

from __future__ import annotations

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lean_redis import LeanThreads, pack
from coupon_workers.wallet.wallet_cache import FILL_MS, Look, new_token, what_is_kept
from coupon_workers.wallet.wallet_key import wallet_key


class KeptWallets:
    """Threads may share it; each has its own connection."""

    def __init__(self, lean: LeanThreads) -> None:
        self._lean = lean

    def look(self, user_id: str) -> Look:
        """As ``wallet_cache.kept_wallet``."""
        token = new_token()
        try:
            [page] = self._lean.ask([pack("SET", wallet_key(user_id), token, "PX", FILL_MS, "NX", "GET")])
        except StoreUnavailable:
            return None, None
        # An error is an answer too, of a Redis that is loading or full: as good as nothing kept.
        return what_is_kept(page, token) if page is None or isinstance(page, bytes) else (None, None)


def forget_kept_wallet(lean: LeanThreads, user_id: str) -> None:
    """As ``wallet_cache.forget_wallets``, of one user."""
    command = [pack("UNLINK", wallet_key(user_id))]
    try:
        [answer] = lean.ask(command)
    except StoreUnavailable:
        # The connection may have been left over from a server that was started anew since.
        [answer] = lean.ask(command)
    if not isinstance(answer, int):
        raise StoreUnavailable("Redis", str(answer))
