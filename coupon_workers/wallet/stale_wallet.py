"""Forgetting kept wallets after a commit, when nothing may go wrong any more."""

from __future__ import annotations

from collections.abc import Collection

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.kept_page import KEEP_MS
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.wallet.wallet_cache import forget_kept_wallet, forget_wallets

_log = get_logger(__name__)


def forget_stale_wallets(services: Services, user_ids: Collection[str]) -> None:
    """Forget the kept pages of these users, whose coupons have changed.

    The change is committed, and its answer true, whether Redis hears of it or not: a page that could not be forgotten
    goes by itself in ``KEEP_MS``. Raises nothing.
    """
    if not user_ids:
        return
    try:
        if len(user_ids) == 1:  # the common change
            forget_kept_wallet(services.lean, next(iter(user_ids)))
        else:
            forget_wallets(services.redis, user_ids)
    except StoreUnavailable as error:
        _log.warning("wallets_not_forgotten", users=len(user_ids), stale_ms=KEEP_MS, error=str(error))
