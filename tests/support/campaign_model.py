"""Campaigns in small: what batches, claims and settling must do to one template, in plain Python."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

OPEN = ("ready", "running", "paused")


@dataclass
class ModelBatch:
    """A batch: the users of each of its shards in order, how far each has come, and who got what."""

    shards: list[list[str]]
    policy: str
    status: str = "ready"
    started: bool = False
    left: int = 0
    cursors: list[int] = field(default_factory=list)
    issued: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)

    @property
    def audience(self) -> int:
        """Distinct users."""
        return sum(map(len, self.shards))

    @property
    def through(self) -> bool:
        """Whether nobody is left."""
        return self.cursors == [len(users) for users in self.shards]


@dataclass
class CampaignModel:
    """A template's books. ``pending``: accepted claims, each with the template's pauses that it knew of."""

    total: int
    limit: int | None
    batches: list[ModelBatch]
    warm: bool = True
    paused: bool = False
    epoch: int = 0
    claimed: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    pending: list[tuple[str, int]] = field(default_factory=list)

    def held(self, user: str) -> int:
        """Coupons of a user."""
        return self.claimed[user] + sum(user in batch.issued for batch in self.batches)

    @property
    def issued(self) -> int:
        """Coupons of all."""
        return self.claimed.total() + sum(len(batch.issued) for batch in self.batches)

    @property
    def room(self) -> int:
        """Units that are neither issued nor set aside."""
        return self.total - self.issued - sum(batch.left for batch in self.batches)

    def full(self, user: str) -> bool:
        """Whether the user has as many as he may have."""
        return self.limit is not None and self.held(user) >= self.limit

    def drain(self) -> None:
        """Settle every pending claim, the older before the newer."""
        for user, epoch in self.pending:
            if self.paused or epoch < self.epoch or self.full(user) or self.room <= 0:
                self.rejected += 1
            else:
                self.claimed[user] += 1
        self.pending = []

    def start(self, batch: ModelBatch) -> None:
        """Set units aside for all, or for some, or fail."""
        if batch.status != "ready":
            return
        stock = self.room - len(self.pending) if self.warm else self.room
        units = max(0, min(batch.audience, stock))
        short = units == 0 or (units < batch.audience and batch.policy == "all_or_nothing")
        if self.paused or short:
            batch.status = "failed"
        else:
            batch.status, batch.started, batch.left = "running", True, units

    def step(self, batch: ModelBatch, shard: int, cursor: int, chunk: int) -> bool:
        """The next users of a shard, if it stands at ``cursor`` and may go on; whether it did."""
        users = batch.shards[shard][cursor : cursor + chunk]
        if batch.status != "running" or batch.cursors[shard] != cursor or (self.paused and users):
            return False
        for user in users:
            if self.full(user):
                batch.refused.append((user, "LIMIT_REACHED"))
            elif batch.left == 0:
                batch.refused.append((user, "SOLD_OUT"))
            else:
                batch.left -= 1
                batch.issued.append(user)
        batch.cursors[shard] += len(users)
        return True

    def end(self, batch: ModelBatch, status: str) -> None:
        """Give back what is left."""
        batch.status, batch.left = status, 0

    def view(self) -> dict[str, Any]:
        """What must be in the tables."""
        return {
            "batches": [
                (batch.status, batch.cursors, sorted(batch.issued), sorted(batch.refused), batch.left)
                for batch in self.batches
            ],
            "claimed": sorted(self.claimed.elements()),
            "books": (
                self.issued,
                sum(batch.left for batch in self.batches),
                sum(len(batch.issued) for batch in self.batches),
                self.rejected,
            ),
        }
