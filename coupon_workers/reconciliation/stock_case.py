"""One template's stock, judged: what differs, each root once.

What explains another difference comes before it: too many coupons, then lost claims, then rows that the gate and the
counter both deny, then the counter, then the gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.reconciliation.difference import Difference
from coupon_workers.reconciliation.gate_books import GateBooks, LostClaim
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.stock_books import Books
from coupon_workers.reconciliation.taker_difference import wrong_takers
from coupon_workers.runtime.services import Services

FORGOTTEN = timedelta(minutes=1)
"""The sweep of the gates rings in seconds."""


@dataclass
class Verdict:
    """``differences`` within the database's one snapshot; those ``between`` the stores, which are not read at one
    instant: what seems to differ is looked at again. ``unjudged`` subjects did not hold still, or are explained."""

    differences: list[Difference] = field(default_factory=list)
    between: list[Difference] = field(default_factory=list)
    unjudged: set[str] = field(default_factory=set)
    may_change: bool = False


@dataclass(frozen=True, slots=True)
class StockCase:
    """A template's books and its gate's, None where that is cold. ``steady``: nothing moved while they were read."""

    services: Services
    as_of: datetime
    books: Books
    gate: GateBooks | None
    steady: bool

    def judge(self) -> Verdict:
        """What differs."""
        verdict = Verdict(list(self._rejected()))
        if self.gate is None:
            verdict.differences += [*self._over_issued(), *self._issued()]
            return verdict
        verdict.between += [*self._lost(self.gate), *self._forgotten(self.gate)]
        if over_issued := list(self._over_issued()):
            verdict.differences += over_issued
            verdict.unjudged |= {self._subject("gate"), self._subject("takers")}
        elif self.steady:
            verdict.between += self._judge_steady(self.gate, verdict)
        else:
            verdict.unjudged |= {self._subject("gate"), self._subject("takers")}
            if self.books.issued != self.books.counters.issued:
                verdict.unjudged.add(self._subject())
        verdict.may_change = bool(verdict.between) or not self.steady
        return verdict

    def _judge_steady(self, gate: GateBooks, verdict: Verdict) -> list[Difference]:
        """Counter and rows are of one snapshot; which of them is wrong, the gate says. One that is behind with the
        units is behind with the users too."""
        if rows := list(self._rows_denied(gate)):
            verdict.unjudged |= {self._subject("gate"), self._subject("takers")}
            return rows
        verdict.differences += self._issued()
        if stock := list(self._stock(gate)):
            verdict.unjudged.add(self._subject("takers"))
            return stock
        return list(self._takers(gate, verdict))

    def _difference(self, finding_class: str, part: str, repair: RepairName | None, **evidence: Any) -> Difference:
        return Difference(
            finding_class=finding_class,
            subject=self._subject(part),
            evidence=evidence,
            repair=repair,
            template_id=self.books.counters.template_id,
        )

    def _subject(self, part: str = "") -> str:
        return f"template {self.books.counters.template_id} {part}".rstrip()

    def _over_issued(self) -> Iterator[Difference]:
        total = self.books.counters.total
        if self.books.issued > total:
            yield self._difference("over_issued", "", None, issued=self.books.issued, total=total)

    def _issued(self) -> Iterator[Difference]:
        counters, issued = self.books.counters, self.books.issued
        if counters.issued != issued and issued <= counters.total:
            repair = RepairName.RECOUNT_TEMPLATE if issued + counters.kept <= counters.total else None
            yield self._difference("issued_counter_differs", "", repair, counter=counters.issued, coupons=issued)

    def _rejected(self) -> Iterator[Difference]:
        counter, rejected = self.books.counters.rejected, self.books.rejected
        if counter != rejected and self.books.counters.created_at is not None:
            repair = RepairName.RECOUNT_TEMPLATE
            yield self._difference("rejected_counter_differs", "", repair, counter=counter, rejections=rejected)

    def _rows_denied(self, gate: GateBooks) -> Iterator[Difference]:
        """Coupons lost, or made of nothing: to set the counter by the rows would hide it."""
        counters, issued = self.books.counters, self.books.issued
        if counters.issued != issued and not self._missing(gate, counters.issued):
            yield self._difference("coupons_differ", "", None, counter=counters.issued, coupons=issued)

    def _stock(self, gate: GateBooks) -> Iterator[Difference]:
        missing = self._missing(gate, self.books.issued)
        if missing:
            counters = self.books.counters
            yield self._difference(
                "gate_stock_differs",
                "gate",
                self._preheat(gate),
                total=counters.total,
                stock=gate.mark.gate.stock,
                queued=self._queued(gate),
                issued=self.books.issued,
                reserved=counters.kept,
                missing=missing,
            )

    def _missing(self, gate: GateBooks, issued: int) -> int:
        """Units of the total that are nowhere; below 0: that are twice. A counter of units set aside that is wrong is
        a difference of the batches, whichever of the two the gate goes by."""
        counters = self.books.counters
        left = counters.total - gate.mark.gate.stock - self._queued(gate) - issued
        return min((left - counters.reserved, left - counters.kept), key=abs)

    def _queued(self, gate: GateBooks) -> int:
        return len(gate.queue) + sum(claim.holds_unit for claim in gate.lost)

    def _takers(self, gate: GateBooks, verdict: Verdict) -> Iterator[Difference]:
        if self.books.counters.uncounted or self.books.counters.archived:
            verdict.unjudged.add(self._subject("takers"))
            return
        queued = self._queued_of_users(gate)
        expected = (self.books.takers or 0) + sum(crc32(user.encode()) * n for user, n in queued.items())
        if gate.takers == expected:
            return
        count, users = wrong_takers(self.services, gate.keys, queued)
        if count:
            shown = [each._asdict() for each in users]
            yield self._difference("taker_count_differs", "takers", self._preheat(gate), users=count, first=shown)

    def _queued_of_users(self, gate: GateBooks) -> Counter[str]:
        lost = (claim.user_id for claim in gate.lost if claim.holds_unit and claim.user_id is not None)
        return Counter([*(claim.user_id for claim in gate.queue), *lost])

    def _preheat(self, gate: GateBooks) -> RepairName | None:
        """A rebuild forgets a claim that is nowhere else: not as long as there is one. With archived coupons there is
        none: that gate is to go."""
        if self.books.counters.archived or any(claim.end is None for claim in gate.lost):
            return None
        return RepairName.PREHEAT

    def _forgotten(self, gate: GateBooks) -> Iterator[Difference]:
        oldest = gate.mark.oldest
        if oldest is None or gate.mark.rung:
            return
        waits_since_ms = int(oldest.partition("-")[0])
        if waits_since_ms <= (self.as_of - FORGOTTEN).timestamp() * 1000:
            yield self._difference("claims_forgotten", "queue", RepairName.RING_BELL, oldest=oldest)

    def _lost(self, gate: GateBooks) -> Iterator[Difference]:
        return (self._lost_claim(gate, gate.keys, claim) for claim in gate.lost)

    def _lost_claim(self, gate: GateBooks, keys: BucketKeys, claim: LostClaim) -> Difference:
        told = {"request_id": claim.request_id} if claim.end is None else {"ended": claim.end.state}
        return Difference(
            finding_class="claim_lost" if claim.end is None else "claim_end_untold",
            subject=f"template {keys.template_id} claim {claim.claim_id}",
            evidence={"gate": "queued", "stream": None} | told,
            repair=None if claim.end is None else self._preheat(gate),
            template_id=keys.template_id,
            user_id=claim.user_id or (claim.end.user_id if claim.end else None),
        )
