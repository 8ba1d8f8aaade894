"""``demo --full``: random amounts, a guarded sale under attack, redeem codes and a lottery, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from rich.table import Table

from coupon_workers.checking.report import Invariant
from coupon_workers.checking.told_claim import told_claims_ended
from coupon_workers.demo.code_story import CodeStory
from coupon_workers.demo.guarded_story import GuardedStory
from coupon_workers.demo.lottery_story import LotteryStory
from coupon_workers.demo.pool_story import PoolStory
from coupon_workers.demo.stage import Stage
from coupon_workers.demo.traffic import Traffic
from coupon_workers.load.consistency import inconsistencies, told_claims
from coupon_workers.load.history import ClaimHistory
from coupon_workers.load.http_request import Address

STORIES = 4

RULES = 2 + STORIES
"""Two of all claims, and one of each story."""


class Story(Protocol):
    """A part of it. ``prepare`` and ``end`` are an operator's, and no process is killed meanwhile."""

    def prepare(self) -> None:
        """Make what it needs."""

    def play(self, traffic: Traffic) -> None:
        """Send what its users send."""

    def end(self) -> None:
        """What an operator does when everything is settled."""

    def rules(self) -> tuple[Invariant, ...]:
        """What must hold at its end."""

    def tables(self) -> list[Table]:
        """What it came to, for people."""


class FullDemo:
    """The stories on one stage, and the history of all their claims."""

    def __init__(self, stage: Stage) -> None:
        self._stories: tuple[Story, ...] = (
            PoolStory(stage),
            GuardedStory(stage),
            CodeStory(stage),
            LotteryStory(stage),
        )
        self._history = ClaimHistory()

    def prepare(self, step: Callable[[], None]) -> None:
        """Make templates, a policy, codes and a lottery; ``step`` is called after each story's. Raises ``ClientError``,
        ``CouponWorkersError``."""
        for story in self._stories:
            story.prepare()
            step()

    def play(self, address: Address, *, connections: int, spread: bool, step: Callable[[], None]) -> None:
        """Send everything; ``spread``: over some seconds each, for whoever kills processes meanwhile."""
        with Traffic(address, connections=connections, spread=spread) as traffic:
            for story in self._stories:
                story.play(traffic)
                step()
            self._history = traffic.history

    def end(self, step: Callable[[], None]) -> None:
        """Decide what is held and end the lottery, once all claims are settled. Raises as ``prepare``."""
        for story in self._stories:
            story.end()
            step()

    def rules(self) -> tuple[Invariant, ...]:
        """Those of every story, and of all claims that were sent."""
        told = told_claims(self._history)
        return (
            Invariant(
                "full_equal_answers",
                "equal requests, equal answers, of the pool and under attack",
                lambda _: inconsistencies(self._history),
            ),
            Invariant(
                "full_told_claims_ended",
                "every such claim is issued or rejected, those that were held too",
                partial(told_claims_ended, told=told),
            ),
            *(rule for story in self._stories for rule in story.rules()),
        )

    def tables(self) -> list[Table]:
        """Those of every story."""
        return [table for story in self._stories for table in story.tables()]
