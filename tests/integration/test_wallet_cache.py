"""The kept page of a wallet: filled by one reader at a time, forgotten with every change, never stale."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import redis
from pydantic import SecretStr

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lean_redis import LeanThreads, lean_threads, pack
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.wallet.kept_wallets import KeptWallets, forget_kept_wallet
from coupon_workers.wallet.stale_wallet import forget_stale_wallets
from coupon_workers.wallet.wallet_cache import forget_wallets, keep_wallet, kept_wallet
from coupon_workers.wallet.wallet_front import first_page
from coupon_workers.wallet.wallet_key import SHARDS, wallet_key, wallet_shard
from tests.support.sale import Sale, open_sale


@pytest.fixture
def nobody() -> redis.Redis:
    """A client of a server that is away."""
    return client_without_retries("unix:///nonexistent/valkey.sock", 100)


def token_of(client: redis.Redis) -> str:
    """Begin to fill ann's wallet."""
    page, token = kept_wallet(client, "ann")
    assert page is None
    assert token is not None
    return token


def test_the_first_reader_fills_and_the_next_finds(redis_client: redis.Redis) -> None:
    """For half a minute."""
    keep_wallet(redis_client, "ann", token_of(redis_client), b"page")

    assert (b"page", None) == kept_wallet(redis_client, "ann")
    assert 0 < redis_client.pttl(wallet_key("ann")) <= 30_000


def test_while_one_reader_fills_the_others_neither_find_nor_fill(redis_client: redis.Redis) -> None:
    """A wallet just forgotten is read once, not by everybody at the same time, and only for so long."""
    token_of(redis_client)

    assert (None, None) == kept_wallet(redis_client, "ann")
    assert 0 < redis_client.pttl(wallet_key("ann")) <= 2_000


def test_a_page_read_before_a_change_is_not_kept_after_it(redis_client: redis.Redis) -> None:
    """The change took the token away; also when another reader has begun since."""
    stale = token_of(redis_client)
    forget_wallets(redis_client, ["ann"])
    keep_wallet(redis_client, "ann", stale, b"stale")
    fresh = token_of(redis_client)
    keep_wallet(redis_client, "ann", stale, b"stale")
    keep_wallet(redis_client, "ann", fresh, b"fresh")

    assert (b"fresh", None) == kept_wallet(redis_client, "ann")


def test_forgetting_spares_the_wallets_of_others(redis_client: redis.Redis) -> None:
    """Of any number of users, in any shard; nobody is nobody."""
    users = [f"u{number}" for number in range(50)]
    for user in ["ann", *users]:
        redis_client.set(wallet_key(user), "page")

    forget_wallets(redis_client, users)
    forget_wallets(redis_client, [])

    assert [wallet_key("ann").encode()] == redis_client.keys("*wallet*")


def test_one_wallet_is_forgotten_over_a_lean_connection(services: Services) -> None:
    """Also when the server has closed it since: the order that changed a coupon is committed, and says so once."""
    wallets, forgotten = KeptWallets(services.lean), []
    for _ in range(2):
        token = wallets.look("ann")[1]
        assert token is not None
        keep_wallet(services.redis, "ann", token, b"page")
        services.redis.client_kill_filter(_type="normal", skipme=True)
        forget_stale_wallets(services, ["ann"])
        forgotten.append(services.redis.exists(wallet_key("ann")))

    assert [0, 0] == forgotten


def test_a_wallet_that_cannot_be_forgotten_is_told(settings: Settings) -> None:
    """Where Redis is away, and where it answers with an error."""
    with pytest.raises(StoreUnavailable):
        forget_kept_wallet(LeanThreads("unix:///nowhere.sock", 100), "ann")

    assert settings.redis_url is not None
    refusing = LeanThreads(settings.redis_url.get_secret_value(), 2_000)
    refusing.ask([pack("RESET"), pack("MULTI")])  # what is asked in a transaction is queued, not done
    with pytest.raises(StoreUnavailable, match="QUEUED"):
        forget_kept_wallet(refusing, "ann")


def test_a_shards_wallets_share_a_hash_tag(redis_client: redis.Redis) -> None:
    """On a cluster they lie on one node, and are forgotten in one command."""
    assert set(range(SHARDS)) == {wallet_shard(f"u{number}") for number in range(500)}
    assert f"cw:{{w{wallet_shard('ann')}}}:wallet:ann" == wallet_key("ann")


def test_without_redis_nothing_is_kept_and_nothing_fails(nobody: redis.Redis) -> None:
    """The wallet is read from the database."""
    assert (None, None) == kept_wallet(nobody, "ann")
    keep_wallet(nobody, "ann", "token", b"page")


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units; ann has a coupon."""
    opened = open_sale(services)
    opened.claim("ann")
    opened.drain()
    return opened


def test_a_page_kept_is_the_page_read(sale: Sale) -> None:
    """Word for word."""
    read, kept = first_page(sale.services, "ann"), first_page(sale.services, "ann")

    assert read == kept
    assert ["unused"] == [coupon["status"] for coupon in kept["items"]]
    assert kept_wallet(sale.services.redis, "ann")[0] is not None


def test_a_new_coupon_is_seen_at_once(sale: Sale) -> None:
    """Settling forgets the wallets of its users before it acknowledges."""
    first_page(sale.services, "ann")
    second = sale.claim("ann", "r2").claim_id
    sale.drain()

    items = first_page(sale.services, "ann")["items"]

    assert 2 == len(items)
    assert str(second) == items[0]["coupon_no"]


def test_a_kept_coupon_past_its_validity_reads_expired(sale: Sale) -> None:
    """Its page was kept while it was unused."""
    first_page(sale.services, "ann")
    later = replace(sale.services, clock=lambda: sale.services.clock() + timedelta(days=8))

    assert ["expired"] == [coupon["status"] for coupon in first_page(later, "ann")["items"]]
    assert ["unused"] == [coupon["status"] for coupon in first_page(sale.services, "ann")["items"]]


def test_a_wallet_is_read_without_redis(sale: Sale, nobody: redis.Redis) -> None:
    """Slower, and no less right."""
    assert 1 == len(first_page(replace(sale.services, redis=nobody), "ann")["items"])


def test_a_lean_look_finds_what_the_ordinary_client_keeps(sale: Sale) -> None:
    """The same page, the same turns at filling; a Redis that is away is nothing kept."""
    services = sale.services
    wallets = KeptWallets(services.lean)

    nothing, token = wallets.look("ann")
    turn = wallets.look("ann"), kept_wallet(services.redis, "ann")
    assert token is not None
    keep_wallet(services.redis, "ann", token, b"page")
    kept = wallets.look("ann")

    away = services.settings.model_copy(update={"redis_url": SecretStr("unix:///nowhere.sock")})
    assert (None, ((None, None), (None, None)), (b"page", None)) == (nothing, turn, kept)
    assert (None, None) == KeptWallets(lean_threads(away)).look("ann")
