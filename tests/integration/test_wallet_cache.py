"""The kept page of a wallet: forgotten with every change, the same as the page that is read, and of bounded size."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import redis
from hypothesis import settings as settings_of_run
from hypothesis import strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from pydantic import SecretStr
from sqlalchemy import text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.kept_page import KEEP_MS, KeptPages
from coupon_workers.runtime.lean_redis import LeanThreads, lean_threads, pack
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.wallet.stale_wallet import forget_stale_wallets
from coupon_workers.wallet.wallet_cache import forget_kept_wallet, forget_wallets
from coupon_workers.wallet.wallet_front import FIRST_PAGE, first_page
from coupon_workers.wallet.wallet_key import SHARDS, wallet_key, wallet_shard
from tests.support.sale import Sale, open_sale


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
    forgotten = []
    for _ in range(2):
        services.redis.set(wallet_key("ann"), "page")
        forget_stale_wallets(services, ["ann"])
        forgotten.append(services.redis.exists(wallet_key("ann")))
        services.redis.client_kill_filter(_type="normal", skipme=True)

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
    assert sale.services.redis.exists(wallet_key("ann"))


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


def test_a_wallet_is_read_without_redis(sale: Sale) -> None:
    """Slower, and no less right."""
    away = sale.services.settings.model_copy(update={"redis_url": SecretStr("unix:///nowhere.sock")})

    assert 1 == len(first_page(replace(sale.services, lean=lean_threads(away)), "ann")["items"])


def test_a_large_wallet_keeps_no_more_than_a_page(services: Services) -> None:
    """Of ten thousand coupons the newest fifty are kept, some kilobytes; the rest is read page by page."""
    sale = open_sale(services, total_quantity=10_000, name="n" * 100)
    fill_one_wallet(services, sale.template_id, "ann", 10_000)

    page = first_page(services, "ann")

    kept = services.redis.get(wallet_key("ann"))
    assert isinstance(kept, bytes)
    assert FIRST_PAGE == len(page["items"])
    assert page["next_cursor"] == page["items"][-1]["coupon_no"]
    assert len(kept) < 32_768


def fill_one_wallet(services: Services, template_id: int, user_id: str, count: int) -> None:
    """So many coupons of a user, by SQL."""
    with services.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version,"
                " valid_from, valid_to, source, claimed_at)"
                " SELECT :user_id, n, :template_id, n, 'r' || n, 1, now(), now() + interval '7 days', 'claim', now()"
                "   FROM generate_series(1, :count) AS n"
            ),
            {"user_id": user_id, "template_id": template_id, "count": count},
        )


class WalletMachine(RuleBasedStateMachine):
    """Readers, changes and forgetters in any order, each in steps; a reader never sees what was denied before he came
    once the change is told, and never what was denied a page's life ago."""

    pages: KeptPages
    client: redis.Redis

    def __init__(self) -> None:
        super().__init__()
        self.client.unlink(wallet_key("ann"))
        self.version = 0
        self.told = 0
        self.fills: list[tuple[str, int]] = []

    @rule()
    def change(self) -> None:
        """A commit, of which Redis has not heard."""
        self.version += 1

    @rule()
    def forget(self) -> None:
        """Redis hears of all that was committed."""
        forget_wallets(self.client, ["ann"])
        self.told = self.version

    @rule()
    def begin(self) -> None:
        """A reader looks; who may fill reads the database now, and stores what he read later, or never."""
        look = self.pages.look(wallet_key("ann"))
        if look.token is not None:
            self.fills.append((look.token, self.version))
        elif look.page is not None:
            assert int(look.page) >= self.told

    @precondition(lambda self: self.fills)
    @rule(which=strategies.integers(0, 3))
    def store(self, which: int) -> None:
        """One of those who read stores it."""
        token, read = self.fills.pop(which % len(self.fills))
        self.pages.keep(wallet_key("ann"), token, b"%d" % read)

    @rule()
    def run_out(self) -> None:
        """The life of what is there ends: nothing that was read before is found any more."""
        self.client.pexpire(wallet_key("ann"), 0)
        self.told = self.version

    @invariant()
    def it_runs_out(self) -> None:
        """Whatever is there ends within a second."""
        assert self.client.pttl(wallet_key("ann")) in range(-2, KEEP_MS + 1)
        assert self.client.pttl(wallet_key("ann")) != -1


def test_no_order_of_reads_and_changes_leaves_a_stale_page(services: Services) -> None:
    """Against the smallest model there is: a number that rises."""
    machine = type(
        "Machine", (WalletMachine,), {"pages": KeptPages(services.lean, services.redis), "client": services.redis}
    )

    run_state_machine_as_test(machine, settings=settings_of_run(max_examples=60, stateful_step_count=30))
