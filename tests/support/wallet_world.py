"""Wallets under every change and every mishap, in a time of their own: what was true, and what is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import Engine, text

from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.vouched_page import VouchedPages
from coupon_workers.wallet.wallet import read_wallet
from coupon_workers.wallet.wallet_front import FIRST_PAGE, first_page
from coupon_workers.wallet.wallet_watch import WalletWatch
from tests.support.http_shop import Shop
from tests.support.order_http import OrderCentre

USERS = ("ann", "bob")
MOST_STALE_S = 1.0

Items = list[dict[str, Any]]


def cut_watches(engine: Engine) -> None:
    """The server has ended the connections of all watches."""
    with engine.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND query LIKE '%pg_current_snapshot%'"
            )
        )


class _Kept(NamedTuple):
    value: bytes
    ends_s: float


class WalletWorld:
    """A shop, two fronts' watches, and a clock that stands still between moments.

    ``now_s`` is the world's time: what a moment takes, and what is skipped. What Redis keeps of wallets ends by it.
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        self.shop = Shop(services)
        self.centre = OrderCentre(self.shop)
        self.template_id = self.shop.desk.open(
            total_quantity=100_000, transferable=True, refund={"return": "full_only"}
        )
        self.watches = [WalletWatch(services), WalletWatch(services)]
        self.pages = VouchedPages(services.lean, services.redis)
        self.now_s = 0.0
        self.numbers = 0
        self._kept: dict[bytes, _Kept] = {}
        # What was true of each wallet, and when it ceased to be.
        self.was: dict[str, list[tuple[Items, float]]] = {user: [] for user in USERS}
        self.true: dict[str, Items] = {user: [] for user in USERS}

    def close(self) -> None:
        """Give the watches' connections back."""
        for watch in self.watches:
            watch.close()

    def number(self) -> int:
        """A new one."""
        self.numbers += 1
        return self.numbers

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Redis goes on where it stopped, for as long as this takes."""
        self._thaw()
        began_s = time.monotonic()
        try:
            yield
        finally:
            self.now_s += time.monotonic() - began_s
            self._freeze()

    def skip(self, seconds: float) -> None:
        """Time passes, and nothing happens."""
        self.now_s += seconds

    def change(self, change: Callable[[], object], *, is_told: bool) -> None:
        """Change wallets. If not ``is_told`` whoever did it died after the commit, before he forgot their pages."""
        with self.moment():
            before = self._read_all()
            change()
            if not is_told:
                for key, kept in before.items():
                    self._put(key, kept)
        for user in USERS:
            true = read_wallet(self.services, user, limit=FIRST_PAGE).items
            if true != self.true[user]:
                self.was[user].append((self.true[user], self.now_s))
                self.true[user] = true

    def assert_shown(self, user: str, items: Items) -> None:
        """It was true within the last second."""
        before = [each for each, ended_s in self.was[user] if self.now_s - ended_s < MOST_STALE_S]
        assert items in [self.true[user], *before]

    def read(self, user: str) -> Items:
        """What a front shows."""
        with self.moment():
            items: Items = first_page(self.services, user)["items"]
        return items

    def redis_ms(self) -> int:
        """The clock of Redis."""
        now: Any = self.services.redis.time()
        return int(now[0]) * 1000 + int(now[1]) // 1000

    def remembered(self) -> dict[bytes, _Kept]:
        """What Redis holds of wallets."""
        return dict(self._kept)

    def rewind(self, kept: dict[bytes, _Kept]) -> None:
        """Redis is as it was then, and nobody was told."""
        with self.moment():
            self._clear()
        self._kept = dict(kept)

    def _thaw(self) -> None:
        self._clear()
        for key, kept in self._kept.items():
            self._put(key, kept)

    def _freeze(self) -> None:
        self._kept = self._read_all()

    def _keys(self) -> list[bytes]:
        found: Any = self.services.redis.keys("cw:{w*")
        return list(found)

    def _clear(self) -> None:
        if keys := self._keys():
            self.services.redis.delete(*keys)

    def _read_all(self) -> dict[bytes, _Kept]:
        client: Any = self.services.redis
        kept = {}
        for key in self._keys():
            value, left_ms = client.get(key), client.pttl(key)
            if value is not None and left_ms != -2:
                kept[key] = _Kept(value, self.now_s + left_ms / 1000 if left_ms >= 0 else float("inf"))
        return kept

    def _put(self, key: bytes, kept: _Kept) -> None:
        left_ms = None if kept.ends_s == float("inf") else int((kept.ends_s - self.now_s) * 1000)
        if left_ms is None or left_ms > 0:
            self.services.redis.set(key, kept.value, px=left_ms)

    def act(self, action: str, user: str) -> None:
        """Something that changes wallets. Refusals are no matter: a coupon may be anything by now."""
        if action == "claim":
            self.shop.front.claimed(self.template_id, user, f"r{self.number()}")
            self.shop.settle(self.template_id)
        elif action == "expire":
            expire_coupons(self.services, self.services.clock() + timedelta(days=8))
        elif action == "rename":
            self.shop.desk.change(self.template_id, name=f"Name {self.number()}").ok()
        elif self.true["ann"]:
            self._act_on(self.true["ann"][self.number() % len(self.true["ann"])], action)

    def _act_on(self, coupon: dict[str, Any], action: str) -> None:
        order, no = coupon["order_no"] or f"o{self.number()}", coupon["coupon_no"]
        address = f"/v1/users/ann/coupons/{no}"
        actions: dict[str, Callable[[], object]] = {
            "lock": lambda: self.centre.lock(order, [no]),
            "redeem": lambda: self.centre.redeem(order),
            "release": lambda: self.centre.release(order),
            "refund": lambda: self.centre.refund(order, f"ref-{self.number()}"),
            "give": lambda: self.shop.front.ask("POST", f"{address}/transfer", {"to_user_id": "bob"}),
            "revoke": lambda: self.shop.desk.admin.ask("POST", f"{address}/revoke", {"reason": "a complaint"}),
        }
        actions[action]()
