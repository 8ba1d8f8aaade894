"""What became of a load's claims, as the database has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from coupon_workers.checking.reading import snapshot
from coupon_workers.runtime.clock import from_ms
from coupon_workers.runtime.queue_depth import server_now_ms
from coupon_workers.runtime.services import Services

_ISSUED = text("""
    SELECT template_id, count(*) AS issued FROM coupon
     WHERE template_id = ANY(CAST(:template_ids AS bigint[])) GROUP BY template_id
""")
_REJECTED = text("""
    SELECT reason, count(*) AS rejected FROM claim_rejection
     WHERE template_id = ANY(CAST(:template_ids AS bigint[])) GROUP BY reason
""")
# claimed_at is the gate's clock and issued_at the database's, at the start of the settling transaction; on one
# machine they are one clock. A nearest rank, as for the answers.
_DURABLE = text("""
    SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY issued_at - claimed_at) AS p50,
           percentile_disc(0.99) WITHIN GROUP (ORDER BY issued_at - claimed_at) AS p99
      FROM coupon WHERE template_id = ANY(CAST(:template_ids AS bigint[])) AND claimed_at >= :since
""")


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """Coupons by template, rejections by reason, and the milliseconds from 202 to durable (None of no coupon)."""

    issued: Counter[int]
    rejected: Counter[str]
    durable_p50_ms: float | None
    durable_p99_ms: float | None


def gate_now(services: Services) -> datetime:
    """The present instant of the gate's clock. Raises ``StoreUnavailable``."""
    return from_ms(server_now_ms(services.redis))


def issued_of(services: Services, template_id: int) -> int:
    """Coupons of the template. Raises ``StoreUnavailable``."""
    with snapshot(services) as connection:
        row = connection.execute(_ISSUED, {"template_ids": [template_id]}).first()
    return 0 if row is None else int(row.issued)


def count_outcomes(services: Services, template_ids: Collection[int], since: datetime) -> OutcomeCount:
    """Count what became of all claims of the templates; times are those of claims accepted from ``since`` on.

    Raises ``StoreUnavailable``.
    """
    wanted = {"template_ids": list(template_ids)}
    with snapshot(services) as connection:
        issued = {row.template_id: row.issued for row in connection.execute(_ISSUED, wanted)}
        rejected = {row.reason: row.rejected for row in connection.execute(_REJECTED, wanted)}
        durable = connection.execute(_DURABLE, {**wanted, "since": since}).one()
    p50_ms, p99_ms = (None if part is None else part.total_seconds() * 1000 for part in durable)
    return OutcomeCount(Counter(issued), Counter(rejected), p50_ms, p99_ms)
