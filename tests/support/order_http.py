"""An order centre that calls the API, in short words for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from tests.support.http_reply import Reply
from tests.support.http_shop import Shop
from tests.support.order_shop import CART, Json


class OrderCentre:
    """Asks for user ``ann`` of ``shop``, with a key of its own."""

    def __init__(self, shop: Shop, user: str = "ann") -> None:
        self.shop = shop
        self.user = user
        self.caller = shop.caller("orders")

    def coupon(self, request: str = "r1", *, user: str | None = None, **template: Any) -> str:
        """A coupon of a new template, claimed and settled; its number."""
        template_id = self.shop.desk.open(**template)
        coupon_no = self.shop.front.claimed(template_id, user or self.user, request)
        self.shop.settle(template_id)
        return coupon_no

    def order(self, coupons: Sequence[Any] | None = None, lines: Sequence[Json] = CART, **more: Any) -> Json:
        """An order body."""
        named = {} if coupons is None else {"coupon_nos": list(coupons)}
        return {"user_id": self.user, "currency": "CNY", "channel": "app", "lines": list(lines)} | named | more

    def ask(self, order: str, action: str, body: Json, **headers: str) -> Reply:
        """``POST /v1/orders/{order}/{action}``."""
        return self.caller.ask("POST", f"/v1/orders/{quote(order, safe='')}/{action}", body, **headers)

    def quote(self, coupons: Sequence[Any] | None = None, **more: Any) -> Reply:
        """``POST /v1/quotes``."""
        return self.caller.ask("POST", "/v1/quotes", self.order(coupons, **more))

    def lock(self, order: str, coupons: Sequence[Any], **more: Any) -> Reply:
        """Lock coupons for the order."""
        return self.ask(order, "lock", self.order(coupons, **more))

    def redeem(self, order: str, payment: str = "pay-1", **more: Any) -> Reply:
        """Tell of its payment."""
        return self.ask(order, "redeem", {"user_id": self.user, "payment_no": payment} | more)

    def release(self, order: str, reason: str = "buyer") -> Reply:
        """Let its coupons go."""
        return self.ask(order, "release", {"user_id": self.user, "reason": reason})

    def refund(self, order: str, refund: str, **what: Any) -> Reply:
        """Return it, or ``lines`` of it."""
        return self.ask(order, "refunds", {"user_id": self.user, "refund_no": refund} | (what or {"full": True}))

    def tell(self, event: str, order: str, kind: str, occurred_at: str, **more: Any) -> Reply:
        """``POST /v1/order-events``."""
        body = {"event_id": event, "order_no": order, "user_id": self.user, "type": kind, "occurred_at": occurred_at}
        return self.caller.ask("POST", "/v1/order-events", body | more)

    def read(self, order: str, user: str | None = None) -> Reply:
        """``GET /v1/orders/{order}``."""
        return self.caller.ask("GET", f"/v1/orders/{quote(order, safe='')}?user_id={user or self.user}")
