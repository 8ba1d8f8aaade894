"""Reading templates: one, a page of them, and what has become of their coupons. Reading needs no Redis."""

from __future__ import annotations

from collections.abc import Sequence

from coupon_workers.claiming.gate_view import GateStock, stock_of
from coupon_workers.errors import StoreUnavailable
from coupon_workers.finance.expense import expense_of
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.templates import template_store as store
from coupon_workers.templates.template_answer import (
    CouponCounts,
    TemplateAnswer,
    TemplateStats,
    TemplateStock,
)
from coupon_workers.templates.template_row import Row, fields_of
from coupon_workers.templates.template_stats import coupons_by_status, rejections_by_reason
from coupon_workers.templates.template_status import TemplateStatus, effective_status

_COLD = GateStock(warmed=False, remaining=0, queued=0)


def read_one(services: Services, template_id: int) -> TemplateAnswer:
    """The template. Raises ``NotFound`` ``TEMPLATE_NOT_FOUND``."""
    with transaction(services.engine) as connection:
        row = store.read_template(connection, template_id)
    return answer_of(services, row)


def read_page(
    services: Services, *, limit: int, before: int | None = None, status: TemplateStatus | None = None
) -> list[TemplateAnswer]:
    """The newest ``limit`` templates whose identities are below ``before``, of ``status`` if one is asked for."""
    with transaction(services.engine) as connection:
        rows = store.read_page(connection, limit=limit, before=before, status=status, now=services.clock())
    return _answers(services, rows)


def read_stats(services: Services, template_id: int) -> TemplateStats:
    """The funnel of the template's claims and coupons. Raises ``NotFound`` ``TEMPLATE_NOT_FOUND``."""
    with transaction(services.engine) as connection:
        row = store.read_template(connection, template_id)
        by_status = coupons_by_status(connection, template_id, services.clock())
        rejected = rejections_by_reason(connection, template_id)
        discount = expense_of(connection, template_id)
    return TemplateStats(
        template_id=str(template_id),
        total=row["total_quantity"],
        issued=row["issued_quantity"] + row["restocked_quantity"],
        queued=_gate_stock(services, [row])[template_id].queued,
        reserved=row["reserved_quantity"],
        rejected=rejected,
        by_status=CouponCounts(**by_status),
        archived=row["archived_quantity"],
        redeemed=by_status.get("redeemed", 0),
        currency=row["currency"],
        discount=discount,
    )


def answer_of(services: Services, row: Row) -> TemplateAnswer:
    """The answer for a row of ``coupon_template``."""
    return _answers(services, [row])[0]


def _answers(services: Services, rows: Sequence[Row]) -> list[TemplateAnswer]:
    now, stocks = services.clock(), _gate_stock(services, rows)
    return [
        TemplateAnswer.model_validate(
            fields_of(row)
            | {
                "template_id": str(row["template_id"]),
                "status": effective_status(row, now),
                "stock": _stock(row, stocks[row["template_id"]]),
                "version": row["version"],
                "created_at": row["created_at"],
                "updated_at": row["updated_at"],
            }
        )
        for row in rows
    ]


def _gate_stock(services: Services, rows: Sequence[Row]) -> dict[int, GateStock]:
    template_ids = [row["template_id"] for row in rows]
    try:
        return stock_of(services, template_ids)
    except StoreUnavailable:
        return dict.fromkeys(template_ids, _COLD)


def _stock(row: Row, gate: GateStock) -> TemplateStock:
    left = row["total_quantity"] - row["issued_quantity"] - row["reserved_quantity"]
    return TemplateStock(
        total=row["total_quantity"],
        issued=row["issued_quantity"],
        queued=gate.queued,
        reserved=row["reserved_quantity"],
        remaining=max(0, gate.remaining) if gate.warmed else left,
        warmed=gate.warmed,
    )
