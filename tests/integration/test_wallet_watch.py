"""Kept wallets that are vouched for: what ends an epoch, who watches, and what it costs the table of notes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from coupon_workers.runtime.kept_page import KEEP_MS, TOKEN
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.vouched_page import LIVE_MS, VouchedPages, vouched_key, watch_key
from coupon_workers.wallet import wallet_watch
from coupon_workers.wallet.wallet_key import SHARDS, shard_tag, wallet_key, wallet_shard
from coupon_workers.wallet.wallet_watch import WalletWatch
from tests.support.wallet_world import cut_watches

ANN = wallet_key("ann")
OF_ANN = vouched_key(shard_tag(wallet_shard("ann")))


class Scene:
    """A watch, and a front that reads ann's wallet; the wallet is a number that the database is said to hold."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.watches: list[WalletWatch] = []
        self.pages = VouchedPages(services.lean, services.redis)
        self.watch = self.new_watch()
        self.truth = 1
        self.reads = 0

    def new_watch(self) -> WalletWatch:
        """Another front's."""
        self.watches.append(WalletWatch(self.services))
        return self.watches[-1]

    def shown(self) -> int:
        """What a reader is shown."""

        def read() -> bytes:
            self.reads += 1
            return b"%d" % self.truth

        return int(self.pages.get(ANN, read))

    def change(self, users: str = "ARRAY['ann']") -> None:
        """The database holds another number; who noted it died before he could forget the page."""
        self.truth += 1
        with self.services.engine.begin() as connection:
            connection.execute(text(f"INSERT INTO wallet_change (user_ids) VALUES ({users})"))

    def grow_old(self) -> None:
        """The page is older than one that nobody vouches for may be."""
        self.services.redis.pexpire(ANN, LIVE_MS - KEEP_MS)

    def notes(self) -> int:
        """How many notes there are."""
        with self.services.engine.connect() as connection:
            return int(connection.scalar(text("SELECT count(*) FROM wallet_change")) or 0)


@pytest.fixture
def scene(services: Services) -> Iterator[Scene]:
    """Vouched for, and nothing read yet."""
    made = Scene(services)
    assert made.watch.turn()
    yield made
    for watch in made.watches:
        watch.close()


def test_a_page_that_is_vouched_for_lives_on(scene: Scene) -> None:
    """It is read once, and kept with its epoch."""
    scene.shown()
    scene.grow_old()

    assert 1 == scene.shown()
    assert 1 == scene.reads
    assert KEEP_MS < scene.services.redis.pttl(ANN) <= LIVE_MS - KEEP_MS


def test_a_change_is_forgotten_by_the_next_look(scene: Scene) -> None:
    """Whoever made it has not; others' pages stay."""
    others = wallet_key("bob")
    scene.services.redis.set(others, "page")
    scene.shown()
    scene.grow_old()
    scene.change()

    before = scene.shown()
    assert scene.watch.turn()

    assert (1, 2) == (before, scene.shown())
    assert scene.services.redis.exists(others)


def test_a_page_read_before_a_look_is_not_kept_after_it(scene: Scene) -> None:
    """Its reader's token is forgotten as a page would be."""
    look = scene.pages.look(ANN)
    assert look.token is not None
    scene.change()
    scene.watch.turn()
    scene.pages.keep(ANN, look.token, b"1", look.epoch)

    assert 2 == scene.shown()


def test_a_change_that_was_not_finished_at_a_look_is_seen_by_the_next(scene: Scene) -> None:
    """A transaction may begin before others and end after them."""
    scene.shown()
    scene.grow_old()
    with scene.services.engine.connect() as slow:
        slow.execute(text("INSERT INTO wallet_change (user_ids) VALUES (ARRAY['ann'])"))
        for _ in range(3):
            scene.change("ARRAY['bob']")
            assert scene.watch.turn()
        slow.commit()

    assert 1 == scene.reads
    assert scene.watch.turn()
    assert 4 == scene.shown()


def test_without_a_watch_a_page_is_shown_for_less_than_a_second(scene: Scene) -> None:
    """The word of one who has died ends by the clock of Redis; readers then keep pages no longer than that."""
    client = scene.services.redis
    assert 0 < client.pttl(OF_ANN) <= KEEP_MS
    scene.shown()
    scene.change()
    young = scene.shown()
    client.delete(OF_ANN)

    assert (1, 1) == (young, scene.shown())
    scene.grow_old()
    assert 2 == scene.shown()
    assert 0 < client.pttl(ANN) <= KEEP_MS


def test_a_young_page_of_another_epoch_is_shown_and_an_old_one_is_read_anew(scene: Scene) -> None:
    """By one reader, in its place."""
    scene.shown()
    scene.services.redis.set(OF_ANN, "f" * 16)
    assert 1 == scene.shown()
    scene.grow_old()

    first, second = scene.pages.look(ANN), scene.pages.look(ANN)

    assert first.token is not None
    assert (None, None) == (second.token, second.page)
    found = scene.services.redis.get(ANN)
    assert isinstance(found, bytes)
    assert found.startswith(TOKEN)
    assert b"f" * 16 == first.epoch


@pytest.mark.parametrize("lost", ["a call", "everything"])
def test_a_redis_that_has_lost_something_ends_the_epoch(scene: Scene, lost: str) -> None:
    """A page may have come back that was forgotten."""
    client = scene.services.redis
    scene.shown()
    page, shard = client.get(ANN), shard_tag(wallet_shard("ann"))
    assert isinstance(page, bytes)
    called = client.get(watch_key(shard))
    assert isinstance(called, bytes)
    scene.change()
    scene.watch.turn()
    if lost == "everything":
        client.flushall()
    else:
        client.set(watch_key(shard), called)
    client.set(ANN, page, px=LIVE_MS - KEEP_MS)

    assert not scene.watch.turn()
    client.delete(*[vouched_key(shard_tag(each)) for each in range(SHARDS)])
    assert scene.watch.turn()
    assert 2 == scene.shown()


def test_a_connection_that_is_lost_ends_the_epoch(scene: Scene) -> None:
    """The server behind the next one may not have what the last one had committed."""
    scene.shown()
    scene.grow_old()
    cut_watches(scene.services.engine)
    scene.truth += 1

    assert not scene.watch.turn()
    scene.services.redis.delete(*[vouched_key(shard_tag(each)) for each in range(SHARDS)])
    assert scene.watch.turn()
    assert 2 == scene.shown()


def test_one_watches_and_another_takes_over_when_he_is_silent(scene: Scene) -> None:
    """He who wakes again finds that he has lost it, whatever he had heard meanwhile."""
    other = scene.new_watch()
    assert not other.turn()
    scene.shown()
    scene.grow_old()
    heard = scene.watch.hear()
    assert heard is not None
    scene.change()
    scene.services.redis.delete(*[vouched_key(shard_tag(each)) for each in range(SHARDS)])

    assert other.turn()
    assert not scene.watch.vouch(heard)
    assert not scene.watch.turn()
    assert other.turn()
    assert 2 == scene.shown()


@pytest.mark.parametrize(
    ("users", "most"), [("NULL", 20_000), ("ARRAY['u1', 'u2', 'u3']", 2)], ids=["everybody", "too many"]
)
def test_what_is_not_worth_telling_one_by_one_ends_the_epoch(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, users: str, most: int
) -> None:
    """All pages are read anew, once they are older than any kept page."""
    monkeypatch.setattr(wallet_watch, "MOST_FORGOTTEN", most)
    scene.shown()
    scene.change(users)
    assert scene.watch.turn()
    scene.grow_old()

    assert 2 == scene.shown()


def test_more_notes_than_a_look_reads_end_the_epoch(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose they are is not asked."""
    monkeypatch.setattr(wallet_watch, "MOST_NOTES", 2)
    scene.shown()
    scene.grow_old()
    for _ in range(3):
        scene.change()
    assert scene.watch.turn()

    assert 4 == scene.shown()


def test_old_notes_are_deleted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece, and none that a look may still need."""
    monkeypatch.setattr(wallet_watch, "CLEANED", 2)
    monkeypatch.setattr(wallet_watch, "LOOKS_A_CLEANING", 1)
    for _ in range(5):
        scene.change()
    assert 5 == scene.notes()

    left = []
    for _ in range(4):
        scene.watch.turn()
        left.append(scene.notes())

    assert [3, 1, 0, 0] == left


def test_a_watch_without_its_stores_vouches_for_nothing(scene: Scene) -> None:
    """It raises nothing, tries again, and says so once."""
    with scene.services.engine.begin() as connection:
        connection.execute(text("ALTER TABLE wallet_change RENAME TO hidden"))
    try:
        with capture_logs() as logs:
            assert [False] * 3 == [scene.watch.turn() for _ in range(3)]
        assert ["wallets_not_vouched_for"] == [line["event"] for line in logs]
    finally:
        with scene.services.engine.begin() as connection:
            connection.execute(text("ALTER TABLE hidden RENAME TO wallet_change"))
    scene.services.redis.flushall()
    assert scene.watch.turn()
