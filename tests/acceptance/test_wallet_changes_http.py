"""Whatever changes a coupon, its owner's wallet shows it: at once when Redis hears of it, within a second if not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import Engine, text

from coupon_workers.runtime.kept_page import KEEP_MS
from coupon_workers.runtime.vouched_page import LIVE_MS
from coupon_workers.wallet.wallet import read_wallet
from coupon_workers.wallet.wallet_key import wallet_key
from coupon_workers.wallet.wallet_watch import WalletWatch
from tests.support.crash import dies_at
from tests.support.http_shop import Shop
from tests.support.wallet_change import CHANGES, NOT_FORGOTTEN, Change, Wallets

USERS = ("ann", "bob")

Shown = list[list[dict[str, Any]]]


@pytest.fixture
def wallets(shop: Shop) -> Wallets:
    """Ann's and Bob's."""
    return Wallets(shop)


def shown(wallets: Wallets) -> Shown:
    """What the storefront is answered."""
    return [wallets.shop.front.wallet(user).ok()["items"] for user in USERS]


def true(wallets: Wallets) -> Shown:
    """What the database says."""
    return [read_wallet(wallets.services, user, limit=50).items for user in USERS]


def changed(wallets: Wallets, change: Change) -> tuple[Shown, Shown]:
    """What was shown before a change and after it, both times from pages that may be kept."""
    change.before(wallets)
    shown(wallets)
    before = shown(wallets)
    change.change(wallets)
    return before, shown(wallets)


@pytest.mark.parametrize("name", sorted(CHANGES.keys() - NOT_FORGOTTEN))
def test_a_change_is_seen_at_once(wallets: Wallets, name: str) -> None:
    """By everybody whose wallet it changes: whoever makes it forgets their kept pages."""
    before, after = changed(wallets, CHANGES[name])

    assert before != after
    assert true(wallets) == after


def _kept(wallets: Wallets) -> dict[str, tuple[Any, int]]:
    client: Any = wallets.services.redis
    return {
        user: (client.get(wallet_key(user)), client.pexpiretime(wallet_key(user)))
        for user in USERS
        if client.exists(wallet_key(user))
    }


def _last_wrong_s(wallets: Wallets) -> float:
    """How long from now on somebody may ask and still be shown what is not so."""
    truth, began_s = true(wallets), time.monotonic()
    asked_s = began_s
    while True:
        asking_s = time.monotonic()
        if shown(wallets) == truth:
            return asked_s - began_s
        asked_s = asking_s


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_change_of_which_redis_does_not_hear_is_seen_within_a_second(wallets: Wallets, name: str) -> None:
    """The pages are put back as they were, to the millisecond of their end: as though nobody had forgotten them, or
    Redis had lost its last second."""
    CHANGES[name].before(wallets)
    shown(wallets)
    before = shown(wallets)
    kept = _kept(wallets)
    CHANGES[name].change(wallets)
    for user, (page, ends_at_ms) in kept.items():
        wallets.services.redis.set(wallet_key(user), page, pxat=ends_at_ms)

    assert _last_wrong_s(wallets) < 1
    assert before != shown(wallets)


@pytest.fixture
def watch(wallets: Wallets) -> Iterator[WalletWatch]:
    """Of a front that vouches."""
    made = WalletWatch(wallets.services)
    assert made.turn()
    yield made
    made.close()


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_change_of_which_redis_does_not_hear_is_noted(wallets: Wallets, watch: WalletWatch, name: str) -> None:
    """In its own transaction: old pages that were vouched for are put back as they were, and are gone with the next
    look."""
    CHANGES[name].before(wallets)
    assert watch.turn()
    shown(wallets)
    before = shown(wallets)
    kept = _kept(wallets)
    CHANGES[name].change(wallets)
    for user, (page, _) in kept.items():
        wallets.services.redis.set(wallet_key(user), page, px=LIVE_MS - KEEP_MS)

    assert watch.turn()
    assert true(wallets) == shown(wallets) != before


@pytest.mark.parametrize(
    ("point", "name"),
    [
        ("order.after_commit", "a coupon is locked"),
        ("settle.after_commit", "a claim is settled"),
        ("reissue.after_commit", "a coupon takes another's place"),
    ],
)
def test_a_process_killed_before_it_forgets_leaves_nothing_stale(
    wallets: Wallets, monkeypatch: pytest.MonkeyPatch, point: str, name: str
) -> None:
    """It has committed, and nobody else knows."""
    CHANGES[name].before(wallets)
    before = shown(wallets)
    with dies_at(monkeypatch, point):
        CHANGES[name].change(wallets)

    assert before != true(wallets)
    assert _last_wrong_s(wallets) < 1


def test_a_flushed_redis_changes_nothing(wallets: Wallets) -> None:
    """The wallets are read again."""
    before = shown(wallets)
    wallets.services.redis.flushall()

    assert before == shown(wallets) == true(wallets)


def wallet_reads(engine: Engine) -> int:
    """How often the pool's connections, all idle, have been asked for a page of a wallet, by the server's count."""
    counted = text(
        "SELECT coalesce(sum(generic_plans + custom_plans), 0) FROM pg_prepared_statements WHERE name = :name"
    )
    with ExitStack() as held:
        idle = [held.enter_context(engine.connect()) for _ in range(engine.pool.checkedin())]  # type: ignore[attr-defined]
        return sum(int(each.scalar(counted, {"name": "wallet_page"}) or 0) for each in idle)


def test_a_thousand_readers_of_a_cold_wallet_ask_the_database_once(wallets: Wallets) -> None:
    """Or once for each life of a page, and when a machine is so busy that a reader is waited for in vain."""
    wallets.shop.front.wallet("bob").ok()  # connections are made, and what describes the answers is read
    before = wallet_reads(wallets.services.engine)
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: wallets.shop.front.wallet("ann").body, range(1_000)))

    assert 1 == len(set(answers))
    assert 1 <= wallet_reads(wallets.services.engine) - before <= 20
