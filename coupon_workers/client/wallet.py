"""The coupons of users, and where users are reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast

from coupon_workers.client.caller import Caller, segment
from coupon_workers.client.wallet_answer import ContactAnswer, CouponAnswer, CouponHistoryAnswer


class Wallet:
    """Scope ``storefront``."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def coupons(
        self, user_id: str, *, status: str | None = None, expiring_before: str | None = None
    ) -> Iterator[CouponAnswer]:
        """A user's coupons, newest first."""
        query = {"status": status, "expiring_before": expiring_before}
        return self._caller.every(f"/v1/users/{segment(user_id)}/coupons", query, page_size=50)

    def coupon(self, user_id: str, coupon_no: str) -> CouponHistoryAnswer:
        """One coupon with its history."""
        return cast("CouponHistoryAnswer", self._caller.read(_coupon(user_id, coupon_no)))

    def transfer(
        self, user_id: str, coupon_no: str, to_user_id: str, *, idempotency_key: str | None = None
    ) -> CouponAnswer:
        """Give a coupon to another user: the receiver's new one."""
        path, body = f"{_coupon(user_id, coupon_no)}/transfer", {"to_user_id": to_user_id}
        return cast("CouponAnswer", self._caller.write("POST", path, body, idempotency_key=idempotency_key))

    def contact(self, user_id: str, channel: Literal["smtp", "sms"]) -> ContactAnswer:
        """A user's address for a channel."""
        return cast("ContactAnswer", self._caller.read(_contact(user_id, channel)))

    def set_contact(
        self, user_id: str, channel: Literal["smtp", "sms"], address: str, *, idempotency_key: str | None = None
    ) -> ContactAnswer:
        """Set a user's address for a channel."""
        path, body = _contact(user_id, channel), {"address": address}
        return cast("ContactAnswer", self._caller.write("PUT", path, body, idempotency_key=idempotency_key))

    def forget_contact(
        self, user_id: str, channel: Literal["smtp", "sms"], *, idempotency_key: str | None = None
    ) -> ContactAnswer:
        """Forget a user's address for a channel; what was forgotten."""
        path = _contact(user_id, channel)
        return cast("ContactAnswer", self._caller.write("DELETE", path, idempotency_key=idempotency_key))


def _coupon(user_id: str, coupon_no: str) -> str:
    return f"/v1/users/{segment(user_id)}/coupons/{segment(coupon_no)}"


def _contact(user_id: str, channel: str) -> str:
    return f"/v1/users/{segment(user_id)}/contacts/{segment(channel)}"
