"""Held claims in small: what gate, settling, decisions, sweep and preheat must do with a template under risk control.

The same commands are given to this and to the real thing (``tests/model/test_risk_machine.py``). What rules say of a
claim is ``RiskModel``'s; this keeps who holds units, and what the gate has not been told of yet.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.support.risk_model import RiskModel

Subject = tuple[str, str]
"""A dimension and a value of it."""

Entry = tuple[str, int | None]
"""The list, or ``none``; and until when (ms), None: for good."""


@dataclass
class RiskBooks:
    """``listed`` is what the database says; ``known`` what the gate does. ``untold``: users whose units went back,
    which the gate has not heard."""

    rules: RiskModel
    stock: int
    limit: int
    takers: Counter[str] = field(default_factory=Counter)
    held: dict[int, str] = field(default_factory=dict)
    issued: dict[int, str] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    untold: list[str] = field(default_factory=list)
    listed: dict[Subject, Entry] = field(default_factory=dict)
    known: dict[Subject, Entry] = field(default_factory=dict)
    fired: dict[int, str] = field(default_factory=dict)

    def decide(self, claim: dict[str, str], now_ms: int) -> tuple[str, str, str]:
        """The outcome of a new request, the rule that refused it, and what fired."""
        if self.takers[claim["user"]] >= self.limit:
            return "LIMIT_REACHED", "", ""
        if self.stock <= 0:
            return "SOLD_OUT", "", ""
        self.rules.listed = {
            subject: word for subject, (word, until_ms) in self.known.items() if until_ms is None or now_ms < until_ms
        }
        verdict, rule, fired = self.rules.weigh(claim, now_ms)
        if verdict == "reject":
            return "RISK_REJECTED", rule, fired
        return "ACCEPTED", "review" if verdict == "review" else "", fired

    def accept(self, claim_id: int, user: str, fired: str, held: bool) -> None:
        """A unit and a piece of the user's allowance are taken, and the claim is settled: held, or issued."""
        self.stock -= 1
        self.takers[user] += 1
        (self.held if held else self.issued)[claim_id] = user
        self.fired[claim_id] = fired

    def end(self, claim_id: int, approved: bool) -> None:
        """The review is over; the gate has not heard of it."""
        user = self.held.pop(claim_id)
        if approved:
            self.issued[claim_id] = user
        else:
            self.rejected.add(claim_id)
            self.untold.append(user)

    def tell(self) -> None:
        """The gate hears of all that has ended."""
        for user in self.untold:
            self.stock += 1
            self.takers[user] -= 1
        self.untold.clear()

    def sweep(self) -> None:
        """The gate hears of everything."""
        self.tell()
        self.known = dict(self.listed)

    def rebuild(self, forgets: bool) -> None:
        """The gate is built from the database; where Redis was emptied, counters begin anew."""
        self.sweep()
        if forgets:
            self.rules.windows.clear()
            self.rules.seen.clear()
