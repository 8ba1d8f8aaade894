"""Forgetting kept wallets: every change of a coupon forgets its owner's page (``runtime/kept_page.py``)."""

from __future__ import annotations

from collections.abc import Collection

import redis
from redis.exceptions import RedisError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lean_redis import LeanThreads, pack
from coupon_workers.wallet.wallet_key import wallet_key, wallet_keys


def forget_wallets(client: redis.Redis, user_ids: Collection[str]) -> None:
    """Forget the pages of these users, and any filling under way. Raises ``StoreUnavailable``."""
    pipeline = client.pipeline(transaction=False)
    for keys in wallet_keys(user_ids):
        pipeline.unlink(*keys)
    try:
        pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error


def forget_kept_wallet(lean: LeanThreads, user_id: str) -> None:
    """As ``forget_wallets``, of one user: every change of an order forgets, so this goes over a lean connection."""
    command = [pack("UNLINK", wallet_key(user_id))]
    try:
        [answer] = lean.ask(command)
    except StoreUnavailable:
        # The connection may have been left over from a server that was started anew since.
        [answer] = lean.ask(command)
    if not isinstance(answer, int):
        raise StoreUnavailable("Redis", str(answer))
