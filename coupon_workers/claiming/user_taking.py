"""What a user has taken of templates, as the database counts it where a gate knows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from coupon_workers.claiming.listed_template import ListedTemplate
from coupon_workers.coupons.source_sql import COUNTED
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.services import Services

# "+ 0" as in settling: of a new template the statistics know nothing. What others gave a user, and
# what he won, is not counted.
_TAKEN = text(
    f"""
    SELECT c.template_id, count(*) AS coupons,
           count(*) FILTER (WHERE CAST(c.claimed_at AT TIME ZONE t.timezone AS date)
                                  = CAST(CAST(:now AS timestamptz) AT TIME ZONE t.timezone AS date)) AS today
      FROM coupon c JOIN coupon_template t ON t.template_id = c.template_id
     WHERE c.user_id = :user_id AND c.template_id + 0 = ANY (CAST(:template_ids AS bigint[]))
       AND {COUNTED}
     GROUP BY c.template_id
    """
)


@dataclass(frozen=True, slots=True)
class Taking:
    """``remaining`` units may be taken by anybody; None while the gate is cold. ``count`` and ``today`` are the
    user's."""

    remaining: int | None
    count: int
    today: int


def takings_in_database(
    services: Services, user_id: str, templates: Sequence[ListedTemplate], now: datetime
) -> dict[int, Taking]:
    """By template, what the books say, in one statement. Raises ``StoreUnavailable``."""
    named = {"user_id": user_id, "now": now, "template_ids": [each.template_id for each in templates]}
    with database_errors(), services.engine.connect() as connection:
        taken = {row.template_id: row for row in connection.execute(_TAKEN, named)}
    return {each.template_id: Taking(each.row["free"], *_counts(taken.get(each.template_id))) for each in templates}


def _counts(row: Any) -> tuple[int, int]:
    return (0, 0) if row is None else (row.coupons, row.today)
