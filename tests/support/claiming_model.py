"""Claiming in small: what gate, settling and preheat must do, in plain Python, one step at a time.

The same commands are given to this and to the real thing (``tests/model``); afterwards both must hold the same. One
template with a limit per user; no daily limit, no window. With a pool or without: what is drawn is chance, so the model
is told what was drawn and says whether it could be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Request = tuple[str, str]
"""User and request id."""


class Entry(NamedTuple):
    """A claim in the pending stream."""

    entry_id: tuple[int, int]
    claim_id: int
    user: str
    request: str
    seq: int
    epoch: int
    value: int | None = None


class End(NamedTuple):
    """How a claim of the stream ended. ``reason`` None: issued. ``answer``: claim id and state that its request has."""

    entry: Entry
    reason: str | None
    answer: tuple[int, str]
    redrawn: int | None = None


@dataclass
class Rules:
    """The template as somebody knows it. ``total``: what claims may take, without what was given by hand."""

    version: int = 1
    total: int = 0
    paused: bool = False
    epoch: int = 0


@dataclass
class Gate:
    """What Redis holds."""

    warm: bool
    rules: Rules
    stock: int
    takers: dict[str, tuple[int, int]] = field(default_factory=dict)
    requests: dict[Request, tuple[int, str]] = field(default_factory=dict)
    claims: set[int] = field(default_factory=set)
    pending: list[Entry] = field(default_factory=list)
    pool: Counter[int] = field(default_factory=Counter)

    def decide(self, user: str, request: str, limit: int) -> tuple[str, tuple[int, str] | None]:
        """The outcome; when replayed, the answer too."""
        if (user, request) in self.requests:
            return "REPLAYED", self.requests[user, request]
        if not self.warm:
            return "NOT_WARMED", None
        if self.rules.paused:
            return "PAUSED", None
        if self.takers.get(user, (0, 0))[0] >= limit:
            return "LIMIT_REACHED", None
        return ("SOLD_OUT" if self.stock <= 0 else "ACCEPTED"), None

    def accept(
        self, user: str, request: str, claim_id: int, entry_id: tuple[int, int], value: int | None = None
    ) -> None:
        """Take a unit and the value that was drawn, count the user, queue the claim."""
        if value is None:
            assert not +self.pool
        else:
            assert self.pool[value] > 0
            self.pool[value] -= 1
        count, seq = self.takers.get(user, (0, 0))
        self.stock -= 1
        self.takers[user] = (count + 1, seq + 1)
        self.requests[user, request] = (claim_id, "queued")
        self.claims.add(claim_id)
        self.pending.append(Entry(entry_id, claim_id, user, request, seq + 1, self.rules.epoch, value))

    def acknowledge(self, batch: list[End]) -> None:
        """Write ends down; a rejected claim gives back if this removes it. Cut the head off, if it is this batch's."""
        for end in batch:
            entry = end.entry
            if end.redrawn is not None and entry.claim_id in self.claims:
                self.pool[end.redrawn] -= 1
            self.claims.discard(entry.claim_id)
            if end.reason is None:
                self.requests[entry.user, entry.request] = (entry.claim_id, "issued")
            elif entry in self.pending:
                self.pending.remove(entry)
                self.stock += 1
                if entry.value is not None:
                    self.pool[entry.value] += 1
                self.requests[entry.user, entry.request] = end.answer
                count, seq = self.takers.get(entry.user, (0, 0))
                if entry.user in self.takers:
                    self.takers[entry.user] = (max(0, count - 1), seq)
        first, last = batch[0].entry.entry_id, batch[-1].entry.entry_id
        if not any(entry.entry_id < first for entry in self.pending):
            self.pending = [entry for entry in self.pending if entry.entry_id > last]

    def sync(self, rules: Rules) -> None:
        """Bring a change; each version once."""
        if self.warm and rules.version > self.rules.version:
            self.stock += rules.total - self.rules.total
            self.rules = Rules(**vars(rules))


@dataclass
class Books:
    """What PostgreSQL holds: coupons and rejections by claim id."""

    rules: Rules
    limit: int
    coupons: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    rejections: dict[int, tuple[str, str, int, str]] = field(default_factory=dict)
    given: dict[Request, int] = field(default_factory=dict)
    """Coupons by hand, by user and request."""
    pool: Counter[int] | None = None
    worth: dict[int, int] = field(default_factory=dict)
    drawn_instead: Callable[[int], int] = lambda claim_id: 0
    """What the database has drawn for a claim of which the value was gone."""

    def answers(self) -> dict[Request, tuple[int, str]]:
        """The first claim of each request, and how it ended."""
        first: dict[Request, tuple[int, str]] = {}
        for claim_id, (user, request, _) in self.coupons.items():
            first[user, request] = (claim_id, "issued")
        for claim_id, (user, request, _, reason) in sorted(self.rejections.items()):
            first.setdefault((user, request), (claim_id, reason))
        return first

    def give(self, user: str, request: str, gate: Gate) -> str:
        """What an operator who gives a coupon hears, and its unit taken if he does."""
        if (user, request) in self.given:
            return "REPLAYED"
        if self.pool is not None:
            return "TYPE_NOT_OFFERED"
        if self.rules.paused:
            return "PAUSED"
        free = self.rules.total - len(self.coupons)
        if (min(free, gate.stock) if gate.warm else free) <= 0:
            return "SOLD_OUT"
        self.rules.total -= 1
        self.rules.version += 1
        return "GIVEN"

    def settle(self, entries: list[Entry]) -> list[End]:
        """End each claim, the older before the newer; those whose value is gone get another when all have theirs."""
        before = set(self.coupons)
        ends = [self._settle(entry) for entry in entries]
        if self.pool is None:
            return ends
        new = [end.entry for end in ends if end.entry.claim_id in self.coupons.keys() - before]
        for entry in new:
            if entry.value is not None and self.left()[entry.value] > 0:
                self.worth[entry.claim_id] = entry.value
        redrawn = {entry.claim_id for entry in new} - self.worth.keys()
        for claim_id in redrawn:
            value = self.drawn_instead(claim_id)
            assert self.left()[value] > 0
            self.worth[claim_id] = value
        return [
            end._replace(redrawn=self.worth[end.entry.claim_id]) if end.entry.claim_id in redrawn else end
            for end in ends
        ]

    def left(self) -> Counter[int]:
        """What no coupon is worth yet, of the pool."""
        return (self.pool or Counter()) - Counter(self.worth.values())

    def _settle(self, entry: Entry) -> End:
        answer = self.answers().get((entry.user, entry.request))
        if answer is not None:
            reason = answer[1] if answer[0] == entry.claim_id else "DUPLICATE"
            if reason == "DUPLICATE" and entry.claim_id not in self.rejections:
                self._reject(entry, reason)
            return End(entry, None if reason == "issued" else reason, answer)
        held = Counter(user for user, _, _ in self.coupons.values())
        if self.rules.paused or entry.epoch < self.rules.epoch:
            return self._reject(entry, "PAUSED")
        if held[entry.user] >= self.limit:
            return self._reject(entry, "LIMIT_REACHED")
        if len(self.coupons) >= self.rules.total:
            return self._reject(entry, "SOLD_OUT")
        self.coupons[entry.claim_id] = (entry.user, entry.request, self._free_seq(entry))
        return End(entry, None, (entry.claim_id, "issued"))

    def _reject(self, entry: Entry, reason: str) -> End:
        self.rejections[entry.claim_id] = (entry.user, entry.request, entry.seq, reason)
        return End(entry, reason, (entry.claim_id, reason))

    def _free_seq(self, entry: Entry) -> int:
        used = self.seqs(entry.user)
        return entry.seq if entry.seq not in used else max(used) + 1

    def seqs(self, user: str) -> set[int]:
        """The numbers that a user's claims have had."""
        rows = [*self.coupons.values(), *(row[:3] for row in self.rejections.values())]
        return {seq for owner, _, seq in rows if owner == user}

    def build_gate(self, pending: list[Entry]) -> Gate:
        """The gate as a preheat makes it of these books and the stream."""
        answers = self.answers()
        waiting = [entry for entry in pending if answers.get((entry.user, entry.request), (0,))[0] != entry.claim_id]
        gate = Gate(True, Rules(**vars(self.rules)), self.rules.total - len(self.coupons) - len(waiting))
        gate.requests = dict(answers)
        held = Counter(user for user, _, _ in self.coupons.values())
        owners = {row[0] for row in self.coupons.values()} | {row[0] for row in self.rejections.values()}
        gate.takers = {user: (held[user], max(self.seqs(user))) for user in owners}
        for entry in waiting:
            count, seq = gate.takers.get(entry.user, (0, 0))
            gate.takers[entry.user] = (count + 1, max(seq, entry.seq))
            gate.requests.setdefault((entry.user, entry.request), (entry.claim_id, "queued"))
            gate.claims.add(entry.claim_id)
        gate.pending = waiting
        gate.pool = self.left()
        # Below zero for what is gone, because Redis was rewound.
        gate.pool.subtract(Counter(entry.value for entry in waiting if entry.value is not None))
        return gate
