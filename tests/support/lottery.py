"""A lottery for tests: made, drawn from, settled by the test as its worker, and what both stores hold of it then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from coupon_workers.lottery.draw_gate import DrawDecision, DrawRequest, decide, draw_keys
from coupon_workers.lottery.draw_settlement import drain_draws
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.lottery import read_lottery, read_prizes
from coupon_workers.lottery.lottery_control import pause_lottery
from coupon_workers.lottery.lottery_preheat import preheat_lottery
from coupon_workers.lottery.lottery_sweep import sweep_lotteries
from coupon_workers.lottery.new_lottery import NewLottery, NewPrize, create_lottery
from coupon_workers.lottery.odds import draw_number
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services

OPERATOR = "key-1"
FIRST = 0
"""A number that wins the first prize, whatever it weighs."""


@dataclass(frozen=True)
class Fair:
    """One lottery and the way to its gate."""

    services: Services
    lottery_id: int

    @property
    def keys(self) -> LotteryKeys:
        """Its keys."""
        return LotteryKeys(self.lottery_id)

    def draw(self, user: str = "ann", request: str = "r1", number: int | None = None, now_ms: int = 0) -> DrawDecision:
        """Ask the gate; ``number`` None: by chance."""
        chance = draw_number if number is None else lambda: number
        return decide(self.services, DrawRequest(self.lottery_id, user, request), now_ms=now_ms, number=chance)

    def draws_by_chance(self, count: int) -> None:
        """So many draws of as many users, in batches that go to Redis at once."""
        script, names = lua_script("draw"), draw_keys(self.keys)
        self.services.redis.script_load(script.source)
        for start in range(0, count, 1_000):
            pipeline = self.services.redis.pipeline(transaction=False)
            for number in range(start, start + 1_000):
                args = (self.services.next_id(0), f"c{number}", "r1", 0, draw_number(), 1_000_000, 0, 1_000)
                pipeline.evalsha(script.sha, len(names), *names, *args)
            pipeline.execute()

    def pending_prizes(self) -> Counter[int]:
        """How often each prize waits in the stream."""
        stream: Any = self.services.redis.xrange(self.keys.pending)
        return Counter(int(fields[b"p"]) for _, fields in stream)

    def draw_each(self, users: Iterable[str], number: int | None = None) -> list[DrawDecision]:
        """One accepted draw for each user."""
        decisions = [self.draw(user, number=number) for user in users]
        assert {DrawOutcome.DRAWN} == {decision.outcome for decision in decisions}
        return decisions

    def drain(self) -> int:
        """Settle what is pending; how many."""
        return drain_draws(self.services, self.lottery_id)

    def pause(self) -> None:
        """Nobody draws until it is resumed."""
        pause_lottery(self.services, self.lottery_id)

    def preheat(self) -> int:
        """Rebuild the gate; how many draws were loaded."""
        return preheat_lottery(self.services, self.lottery_id)

    def sweep(self) -> dict[str, int]:
        """One pass of the sweep."""
        return sweep_lotteries(self.services)

    @property
    def books(self) -> dict[str, Any]:
        """Its row."""
        with self.services.engine.connect() as connection:
            return dict(read_lottery(connection, self.lottery_id))

    def prizes(self, column: str) -> list[Any]:
        """A column of its prizes, in order."""
        with self.services.engine.connect() as connection:
            return [prize[column] for prize in read_prizes(connection, self.lottery_id)]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What the database answers; ``:lottery_id`` is this one."""
        with self.services.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement), {"lottery_id": self.lottery_id})]

    def draws(self) -> dict[str, tuple[int, str | None]]:
        """User and request → prize number and reason, as the database has them."""
        found = self.rows(
            "SELECT user_id || ' ' || request_id, prize_no, reason FROM draw WHERE lottery_id = :lottery_id"
        )
        return {request: (prize_no, reason) for request, prize_no, reason in found}

    def coupons(self) -> Counter[str]:
        """Coupons that were won, by user."""
        found = self.rows(
            "SELECT user_id FROM coupon WHERE source = 'lottery' AND batch_no = CAST(:lottery_id AS text)"
        )
        return Counter(user for (user,) in found)

    @property
    def stock(self) -> list[int]:
        """What the gate has left of each prize."""
        stored: Any = self.services.redis.hgetall(self.keys.stock)
        return [left for _, left in sorted((int(prize_no), int(left)) for prize_no, left in stored.items())]

    @property
    def queued(self) -> int:
        """Entries of the pending stream."""
        length: Any = self.services.redis.xlen(self.keys.pending)
        return int(length)

    def gate(self) -> dict[str, dict[str, str]]:
        """What the gate holds: stock, users' draws, requests, and today's draws."""
        names = {"stock": self.keys.stock, "takers": self.keys.takers, "requests": self.keys.requests}
        for key in self.services.redis.keys(f"{self.keys.day_prefix}*"):  # type: ignore[union-attr]  # no awaitable
            names[key.decode()] = key.decode()
        stored: dict[str, Any] = {name: self.services.redis.hgetall(key) for name, key in names.items()}
        return {name: {f.decode(): v.decode() for f, v in fields.items()} for name, fields in stored.items()}


def plan_lottery(
    services: Services, prizes: Sequence[NewPrize], *, start: datetime | None = None, **changed: Any
) -> NewLottery:
    """A lottery that runs from a minute ago for an hour, unless ``changed`` says otherwise."""
    begins = start or utc_now() - timedelta(minutes=1)
    begins = begins.replace(microsecond=begins.microsecond // 1000 * 1000)
    fields: dict[str, Any] = {
        "lottery_id": services.next_id(0),
        "name": "Wheel of fortune",
        "start": begins,
        "end": begins + timedelta(hours=1),
        "prizes": tuple(prizes),
        "timezone": "Asia/Shanghai",
    }
    return NewLottery(**(fields | changed))


def open_lottery(services: Services, prizes: Sequence[NewPrize], **changed: Any) -> Fair:
    """A lottery that is made and warm."""
    lottery = plan_lottery(services, prizes, **changed)
    create_lottery(services, lottery, OPERATOR)
    return Fair(services, lottery.lottery_id)


def coupon_prize(template_id: int, stock: int, weight: int = 1_000_000, name: str = "20 off") -> NewPrize:
    """A prize that is a coupon."""
    return NewPrize(name, weight, stock, template_id)


def thanks(weight: int = 1_000_000, stock: int = 1_000_000) -> NewPrize:
    """A prize that is no coupon."""
    return NewPrize("Thank you", weight, stock)
