"""What a wallet shows was true within the last second, whatever happens to whoever should have seen to it."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services
from coupon_workers.wallet.wallet_front import page_to_keep
from coupon_workers.wallet.wallet_key import wallet_key
from coupon_workers.wallet.wallet_watch import LOOK_S, Heard
from tests.support.machine import run_machine
from tests.support.wallet_world import USERS, WalletWorld, cut_watches

USER = strategies.sampled_from(USERS)
WATCH = strategies.sampled_from([0, 0, 0, 0, 1])
TURNS = strategies.sampled_from([0, 1, 5, 5])
ACTIONS = strategies.sampled_from(
    ["claim", "claim", "claim", "lock", "lock", "redeem", "release", "refund", "give", "revoke", "expire", "rename"]
)
MISHAPS = strategies.sampled_from(["rewind", "rewind", "rewind", "flush", "cut"])


class WalletMachine(RuleBasedStateMachine):
    """Changes, told to Redis or not; fronts that read, and stop midway; watches that look, stop and take over; a Redis
    that forgets or goes back; and time."""

    world: WalletWorld

    @initialize()
    def begin(self) -> None:
        """Whatever is left of the run before is old."""
        self.fills: list[tuple[str, str, bytes, bytes]] = []
        self.heard: list[tuple[int, Heard, float]] = []
        self.world.skip(60)
        self.past = self.world.remembered()

    @rule(action=ACTIONS, user=USER, is_told=strategies.booleans(), turns=TURNS)
    def change(self, action: str, user: str, is_told: bool, turns: int) -> None:
        """Something with a coupon, if it is possible, or a new one; and the watch goes on."""
        self.world.change(lambda: self.world.act(action, user), is_told=is_told)
        self.go_on(0, turns)

    @rule(which=WATCH, turns=TURNS)
    def go_on(self, which: int, turns: int) -> None:
        """A front's watch does what it should; five turns are longer than a page lives for which nobody vouches."""
        for _ in range(turns):
            self.world.skip(LOOK_S)
            with self.world.moment():
                self.world.watches[which].turn()

    @rule(user=USER, turns=TURNS, between=ACTIONS)
    def read_slowly(self, user: str, turns: int, between: str) -> None:
        """A front has the turn and reads the database; others do something, and it stores what it read."""
        with self.world.moment():
            self.world.services.redis.delete(wallet_key(user))
            look = self.world.pages.look(wallet_key(user))
            page = page_to_keep(self.world.services, user)
        assert look.token is not None
        self.world.change(lambda: self.world.act(between, user), is_told=True)
        self.go_on(0, min(turns, 2))
        with self.world.moment():
            self.world.pages.keep(wallet_key(user), look.token, page, look.epoch)

    @rule(which=WATCH, begins=strategies.booleans())
    def watch_slowly(self, which: int, begins: bool) -> None:
        """A front looks; when others have done something it vouches."""
        began_s = self.world.now_s
        with self.world.moment(), suppress(StoreUnavailable):
            if begins:
                heard = self.world.watches[which].hear()
                if heard is not None:
                    self.heard.append((which, heard, began_s))
            elif self.heard:
                watch, heard, began_s = self.heard.pop(0)
                # By the world's clock it has been on its way for longer than by that of Redis.
                asked_ms = self.world.redis_ms() - int((self.world.now_s - began_s) * 1000)
                self.world.watches[watch].vouch(heard._replace(asked_ms=asked_ms))

    @rule(ms=strategies.sampled_from([250, 850, 1_100, 5_000]))
    def pass_time(self, ms: int) -> None:
        """Nobody does anything."""
        self.world.skip(ms / 1000)

    @rule()
    def remember(self) -> None:
        """Redis writes down what it has."""
        self.past = self.world.remembered()

    @rule(mishap=MISHAPS, turns=TURNS)
    def happen(self, mishap: str, turns: int) -> None:
        """Redis is started from what it wrote down, or from nothing; the watches lose their connections."""
        if mishap == "cut":
            cut_watches(self.world.services.engine)
        else:
            self.world.rewind(self.past if mishap == "rewind" else {})
        self.go_on(0, turns)

    @invariant()
    def fronts_show_what_was_true(self) -> None:
        """Each asks for each wallet, whatever has happened."""
        for user in USERS:
            self.world.assert_shown(user, self.world.read(user))


def test_a_wallet_shows_what_was_true_within_the_last_second(services: Services) -> None:
    """In any order of all that can happen to it."""
    world = WalletWorld(services)
    machine = type("Machine", (WalletMachine,), {"world": world})
    try:
        run_machine(machine, examples=20, steps=30)
    finally:
        world.close()
