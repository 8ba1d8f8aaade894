"""The days that were closed, latest first, each as it was last closed and what it cost (API.md, Back office)."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, Field
from sqlalchemy import text

from coupon_workers.finance.close_reading import Revision, revision_of
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_DAYS = text("""
    SELECT DISTINCT ON (business_date) * FROM daily_close
     WHERE business_date < :before ORDER BY business_date DESC, revision DESC LIMIT :limit
""")
_COSTS = text("""
    SELECT business_date, currency, sum(issued_count) AS issued, sum(redeemed_count) AS redeemed,
           sum(expense_minor) AS expense
      FROM daily_close_row
      JOIN unnest(CAST(:days AS date[]), CAST(:revisions AS integer[])) AS wanted (business_date, revision)
           USING (business_date, revision)
     GROUP BY business_date, currency ORDER BY business_date, currency
""")


class DayCost(BaseModel):
    """Of one currency."""

    currency: str
    issued_count: int
    redeemed_count: int
    expense_net: int = Field(description="minor units: redeemed − returned + adjusted")


class ClosedDay(Revision):
    """The latest closing of a day, without its rows."""

    date: str
    costs: list[DayCost]


def read_closes(services: Services, *, limit: int, before: date = date.max) -> list[ClosedDay]:
    """The latest ``limit`` days before ``before`` that were ever closed. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        days = connection.execute(_DAYS, {"before": before, "limit": limit}).all()
        wanted = {"days": [day.business_date for day in days], "revisions": [day.revision for day in days]}
        costs: dict[date, list[DayCost]] = {}
        for row in connection.execute(_COSTS, wanted):
            cost = DayCost(
                currency=row.currency,
                issued_count=int(row.issued),
                redeemed_count=int(row.redeemed),
                expense_net=int(row.expense),
            )
            costs.setdefault(row.business_date, []).append(cost)
    return [
        ClosedDay(
            date=day.business_date.isoformat(),
            costs=costs.get(day.business_date, []),
            **revision_of(day).model_dump(),
        )
        for day in days
    ]
