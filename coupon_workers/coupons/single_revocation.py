"""Revoking one coupon, by an operator, with a reason."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.coupons.revocation import revoke_all, tell_gate
from coupon_workers.coupons.revocation_sql import HOLD
from coupon_workers.coupons.transition import CouponStatus
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.wallet.stale_wallet import forget_stale_wallets


def revoke_coupon(services: Services, user_id: str, coupon_id: int, reason: str, operator: str) -> None:
    """Revoke an unused coupon, and give its unit back where its template says so. One that is revoked is left so.

    Raises ``NotFound`` ``COUPON_NOT_FOUND`` also for another user's coupon; ``Conflict`` ``EXPIRED``, and
    ``COUPON_NOT_AVAILABLE`` with ``coupon_status``, and ``order_no`` when an order holds it; ``StoreUnavailable``.
    """
    now = services.clock()
    with transaction(services.engine) as connection:
        coupon = connection.execute(HOLD, {"user_id": user_id, "coupon_id": coupon_id}).mappings().one_or_none()
        if coupon is None:
            raise NotFound("COUPON_NOT_FOUND", "this user has no coupon of that number")
        if coupon["status"] == CouponStatus.REVOKED:
            return
        _check_unused(dict(coupon), now)
        [moved] = revoke_all(connection, [(user_id, coupon_id)], f"key:{operator}", now)
        facts = {"user_id": user_id, "template_id": str(coupon["template_id"]), "reason": reason}
        record(connection, AuditAction.COUPON_REVOKE, f"coupon:{coupon_id}", after=facts)
    if moved.restocked:
        tell_gate(services, coupon["template_id"])
    forget_stale_wallets(services, {user_id})


def _check_unused(coupon: dict[str, Any], now: datetime) -> None:
    status = coupon["status"]
    if status == CouponStatus.EXPIRED or (status == CouponStatus.UNUSED and coupon["valid_to"] <= now):
        raise Conflict("EXPIRED", f"the coupon was valid until {rfc3339(coupon['valid_to'])}")
    if status != CouponStatus.UNUSED:
        held_by = {"order_no": coupon["order_no"]} if status == CouponStatus.LOCKED else {}
        raise Conflict("COUPON_NOT_AVAILABLE", f"the coupon is {status}", coupon_status=status, **held_by)
