"""A clerk who reconciles: runs at his own time, readings made by hand or by the readers, and findings in few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import text

from coupon_workers.reconciliation.difference import Difference, Reading
from coupon_workers.reconciliation.finding_reading import FindingAnswer, read_findings
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.record import record_reading
from coupon_workers.reconciliation.run import perform_run, write_run
from coupon_workers.reconciliation.run_reading import RunAnswer, read_run
from coupon_workers.runtime.services import Services

NOW = datetime(2026, 11, 12, tzinfo=UTC)

CLERK = "clerk"

Brief = tuple[str, str, str]


def difference(subject: str = "template 7", finding_class: str = "issued_counter_differs", **more: Any) -> Difference:
    """A difference that nobody can mend, of evidence ``more.get("evidence")``."""
    return Difference(
        finding_class=finding_class, subject=subject, evidence=more.pop("evidence", {"booked": 3}), **more
    )


@dataclass
class ReconDesk:
    """Reconciles with ``services``, whose clock stands at ``now`` and is moved by hand."""

    services: Services
    now: datetime = NOW

    def __post_init__(self) -> None:
        self.services = replace(self.services, clock=lambda: self.now)

    def later(self, **by: int) -> ReconDesk:
        """Move the clock."""
        self.now += timedelta(**by)
        return self

    def ask(self, kind: ReconKind = ReconKind.STOCK, as_of: datetime | None = None, day: date | None = None) -> int:
        """A run of a moment, written down."""
        return write_run(self.services, self.services.next_id(0), kind, as_of or self.now, day, CLERK)

    def begin(self, run_id: int) -> None:
        """What a worker does first."""
        self.execute("UPDATE recon_run SET status = 'running', started_at = created_at WHERE run_id = :id", id=run_id)

    def record(
        self,
        differences: Sequence[Difference],
        kind: ReconKind = ReconKind.STOCK,
        *,
        as_of: datetime | None = None,
        day: date | None = None,
        unjudged: Sequence[str] = (),
    ) -> RunAnswer:
        """A run that found these."""
        run_id = self.ask(kind, as_of, day)
        self.begin(run_id)
        reading = Reading(list(differences), 1, frozenset(unjudged))
        record_reading(self.services, run_id, kind, as_of or self.now, day, reading)
        return read_run(self.services, run_id)

    def reconcile(self, kind: ReconKind, day: date | None = None, as_of: datetime | None = None) -> list[FindingAnswer]:
        """A whole run of the readers, with its repairs; its findings."""
        run_id = self.ask(kind, as_of, day)
        perform_run(self.services, run_id)
        return read_findings(self.services, limit=1_000, run_id=run_id)

    def findings(self, **of: Any) -> list[FindingAnswer]:
        """All there are, newest first."""
        return read_findings(self.services, limit=1_000, **of)

    def brief(self, **of: Any) -> list[Brief]:
        """Class, subject and state of each, in the order in which they were opened."""
        return [(each.finding_class, each.subject, str(each.state)) for each in reversed(self.findings(**of))]

    def execute(self, statement: str, **values: Any) -> int:
        """Run a statement; how many rows."""
        with self.services.engine.begin() as connection:
            return connection.execute(text(statement), values).rowcount

    def rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """What a statement answers."""
        with self.services.engine.begin() as connection:
            return [tuple(row) for row in connection.execute(text(statement), values)]
