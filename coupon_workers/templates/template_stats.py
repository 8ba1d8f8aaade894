"""What has become of a template's claims and coupons, counted in PostgreSQL."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, and_, case, func, literal, select

from coupon_workers.schema import ClaimRejection, Coupon


def coupons_by_status(connection: Connection, template_id: int, now: datetime) -> dict[str, int]:
    """Coupons of the template by status; an unused one past its validity counts as expired. Absent: none."""
    expired = and_(Coupon.status == "unused", Coupon.valid_to <= now)
    status = case((expired, literal("expired")), else_=Coupon.status).label("status")
    counts = select(status, func.count().label("coupons")).where(Coupon.template_id == template_id).group_by(status)
    return {row.status: row.coupons for row in connection.execute(counts)}


def outstanding(by_status: dict[str, int]) -> dict[str, int]:
    """Of ``coupons_by_status``, those that may still be used, where there are any."""
    return {status: by_status[status] for status in ("unused", "locked") if by_status.get(status)}


def rejections_by_reason(connection: Connection, template_id: int) -> dict[str, int]:
    """Claims of the template that were accepted and not issued, by reason."""
    counts = (
        select(ClaimRejection.reason, func.count().label("claims"))
        .where(ClaimRejection.template_id == template_id)
        .group_by(ClaimRejection.reason)
        .order_by(ClaimRejection.reason)
    )
    return {row.reason: row.claims for row in connection.execute(counts)}
