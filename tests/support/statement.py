"""The order centre's statements, in short words for tests."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import date, datetime

from coupon_workers.reconciliation.decision import approve_finding
from coupon_workers.reconciliation.difference import Reading
from coupon_workers.reconciliation.finding_reading import FindingAnswer, read_findings
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.order_differences import read_orders
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.run import perform_run, write_run
from coupon_workers.reconciliation.statement import take_statement
from coupon_workers.reconciliation.statement_reading import Statement
from coupon_workers.runtime.services import Services
from tests.support.closing import CLERK, ClosingShop

HEADER = "order_no,user_id,status,paid_amount,discount_amount,currency"

Found = tuple[str, str, int | None, str | None, RepairName | None]


def said(*rows: str, header: str = HEADER) -> bytes:
    """A file of rows such as ``o1,ann,paid,13000,2000,CNY``."""
    return "".join(f"{row}\n" for row in (header, *rows)).encode()


def give(services: Services, day: str, *rows: str, content: bytes | None = None) -> Statement:
    """Give the day's statement."""
    file = io.BytesIO(said(*rows) if content is None else content)
    return take_statement(services, date.fromisoformat(day), file, "centre")


@dataclass
class Comparison:
    """A shop whose orders are compared with what the order centre says, all at the shop's own time."""

    shop: ClosingShop

    def at(self, instant: str) -> Comparison:
        """Move the clock."""
        self.shop.at(instant)
        return self

    def give(self, day: str, *rows: str) -> Statement:
        """Give a day's statement."""
        return give(self.shop.services, day, *rows)

    def read(self, day: str, as_of: datetime | None = None) -> Reading:
        """Compare a day, as of now."""
        return read_orders(self.shop.services, as_of or self.shop.clock.now, date.fromisoformat(day))

    def found(self, day: str, as_of: datetime | None = None) -> list[Found]:
        """Class, subject, amount, currency and repair of each difference."""
        return [
            (each.finding_class, each.subject, each.amount_minor, each.currency, each.repair)
            for each in self.read(day, as_of).differences
        ]

    def reconcile(self, day: str) -> list[FindingAnswer]:
        """A whole run of a day as of now; the day's findings, oldest first."""
        services = self.shop.services
        run = write_run(
            services, services.next_id(0), ReconKind.ORDERS, services.clock(), date.fromisoformat(day), CLERK
        )
        perform_run(services, run)
        return self.findings(day)

    def findings(self, day: str) -> list[FindingAnswer]:
        """All of a day, oldest first."""
        return read_findings(self.shop.services, limit=1_000, day=date.fromisoformat(day))[::-1]

    def states(self, day: str) -> list[tuple[str, str]]:
        """Class and state of each finding of a day, oldest first."""
        return [(each.finding_class, str(each.state)) for each in self.findings(day)]

    def approve(self, finding: FindingAnswer) -> FindingAnswer:
        """Do what it proposes."""
        return approve_finding(self.shop.services, int(finding.finding_id), CLERK, None)
