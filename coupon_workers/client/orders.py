"""Coupons on orders. Each call is made one by a number of the order's own, for good."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

from coupon_workers.client.caller import Caller, given, keyed, segment
from coupon_workers.client.exchange import Call
from coupon_workers.client.order_answer import (
    DayStatement,
    EventAnswer,
    OrderAnswer,
    OrderBody,
    QuoteAnswer,
    RefundAnswer,
    RefundedLineAnswer,
    Statement,
    WholeOrderAnswer,
)


class Orders:
    """Scope ``orders``. Money is in minor units of the order's currency."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def quote(self, order: OrderBody, coupon_nos: Sequence[str] | None = None) -> QuoteAnswer:
        """What coupons would take off: these, or the best combination of the user's wallet. Nothing is held."""
        body = {**order, **given(coupon_nos=coupon_nos and list(coupon_nos))}
        return cast("QuoteAnswer", self._caller.ask("/v1/quotes", body))

    def lock(
        self, order_no: str, order: OrderBody, coupon_nos: Sequence[str], *, ttl_seconds: int | None = None
    ) -> OrderAnswer:
        """Lock coupons for an order: all or none. Again with the same coupons: the same answer."""
        body = {**order, "coupon_nos": list(coupon_nos), **given(ttl_seconds=ttl_seconds)}
        return cast("OrderAnswer", self._caller.write_numbered(f"{_order(order_no)}/lock", body, order_no))

    def redeem(
        self,
        order_no: str,
        user_id: str,
        payment_no: str,
        *,
        paid_at: str | None = None,
        order: OrderBody | None = None,
        coupon_nos: Sequence[str] | None = None,
    ) -> OrderAnswer:
        """The order is paid. With ``order`` and ``coupon_nos`` no lock is needed before."""
        body = {**(order or {}), "user_id": user_id, "payment_no": payment_no}
        body |= given(paid_at=paid_at, coupon_nos=coupon_nos and list(coupon_nos))
        return cast("OrderAnswer", self._caller.write_numbered(f"{_order(order_no)}/redeem", body, payment_no))

    def release(self, order_no: str, user_id: str, reason: str) -> OrderAnswer:
        """The order will not be paid: its coupons are free again."""
        body = {"user_id": user_id, "reason": reason}
        return cast("OrderAnswer", self._caller.write_numbered(f"{_order(order_no)}/release", body, order_no))

    def refund(
        self, order_no: str, user_id: str, refund_no: str, lines: Sequence[RefundedLineAnswer] | None = None
    ) -> RefundAnswer:
        """Return ``lines``; None: all that is left."""
        body = {"user_id": user_id, "refund_no": refund_no, **_returned(lines)}
        return cast("RefundAnswer", self._caller.write_numbered(f"{_order(order_no)}/refunds", body, refund_no))

    def read(self, order_no: str, user_id: str) -> WholeOrderAnswer:
        """An order with its lines, coupons and refunds."""
        return cast("WholeOrderAnswer", self._caller.read(_order(order_no), {"user_id": user_id}))

    def tell(
        self,
        event_id: str,
        order_no: str,
        user_id: str,
        event: Literal["paid", "closed", "refunded"],
        occurred_at: str,
        *,
        payment_no: str | None = None,
        reason: str | None = None,
        refund_no: str | None = None,
        lines: Sequence[RefundedLineAnswer] | None = None,
    ) -> EventAnswer:
        """What happened to an order, in any order of arrival. ``lines`` of a refund; None: all that was left."""
        body = given(event_id=event_id, order_no=order_no, user_id=user_id, type=event, occurred_at=occurred_at)
        body |= given(payment_no=payment_no, reason=reason, refund_no=refund_no)
        body |= _returned(lines) if event == "refunded" else {}
        return cast("EventAnswer", self._caller.write_numbered("/v1/order-events", body, event_id))

    def put_statement(self, date: str, content: bytes, *, idempotency_key: str | None = None) -> Statement:
        """The order centre's statement of a day, a CSV, in place of the one before."""
        call = Call("PUT", f"/v1/order-statements/{segment(date)}", {}, {"Content-Type": "text/csv"}, content)
        return cast("Statement", self._caller.perform(keyed(call, idempotency_key)).json())

    def statement(self, date: str) -> Statement:
        """The statement of a day."""
        return cast("Statement", self._caller.read(f"/v1/order-statements/{segment(date)}"))

    def statements(self) -> Iterator[DayStatement]:
        """The latest statement of each day, the latest day first."""
        return self._caller.every("/v1/order-statements")


def _returned(lines: Sequence[RefundedLineAnswer] | None) -> dict[str, Any]:
    return {"full": True} if lines is None else {"lines": list(lines)}


def _order(order_no: str) -> str:
    return f"/v1/orders/{segment(order_no)}"
