"""The real service, called in the words of the model, and what its database holds, in the same words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.coupons.transfer import Transfer, transfer_coupon
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.orders import order_desk as desk
from coupon_workers.orders.order_request import EventBody, LockBody, QuoteBody, RedeemBody, RefundBody, ReleaseBody
from coupon_workers.orders.unlock import unlock_coupon
from coupon_workers.orders.unlock_sweep import release_overdue_locks, settle_met_events
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.services import Services
from tests.support.order_states import UNMET, Answer, Call, Lines
from tests.support.order_sums import Cart

OPERATOR = "key:orders"

_VIEW = text("""
    SELECT jsonb_build_object(
        'coupons', (SELECT jsonb_agg(jsonb_build_array(coupon_id, user_id, status, order_no, valid_to)) FROM coupon),
        'orders', (SELECT jsonb_agg(jsonb_build_array(user_id, order_no, status, discount_minor, payable_minor,
                                                      refunded_minor, fully_returned_at IS NOT NULL, payment_no))
                     FROM coupon_order),
        'uses', (SELECT jsonb_agg(jsonb_build_array(user_id, order_no, coupon_id, u.state, u.discount_minor,
                                                    reversed_minor))
                   FROM coupon_use u JOIN coupon_order o USING (user_id, order_no, lock_no)),
        'events', (SELECT jsonb_agg(jsonb_build_array(user_id, event_id, state, code)) FROM order_event),
        'expense', (SELECT coalesce(sum(CASE kind WHEN 'redeem' THEN amount_minor ELSE -amount_minor END), 0)
                      FROM ledger_entry))
""")


@dataclass(frozen=True)
class OrderCaller:
    """Methods as ``OrderModel`` has them. What is refused is answered ``("refused", code)``."""

    services: Services

    def answer(self, call: Call) -> Answer:
        """The answer of the service, in the model's words."""
        try:
            answer: Answer = getattr(self, call.name)(**call.arguments)
        except (Conflict, NotFound) as error:
            return "refused", error.code
        except InvalidInput:
            return "refused", "INVALID"
        return answer

    def view(self) -> dict[str, Any]:
        """What the database holds."""
        with self.services.engine.connect() as connection:
            found: dict[str, Any] = connection.scalar(_VIEW)
        rows = {name: value or [] for name, value in found.items() if name != "expense"}
        return {
            "coupons": {
                number: (owner, status, order, datetime.fromisoformat(valid_to))
                for number, owner, status, order, valid_to in rows["coupons"]
            },
            "orders": {(user, order): tuple(rest) for user, order, *rest in rows["orders"]},
            "uses": {
                (user, order, number): ("redeemed" if state == "returned" else state, *amounts)
                for user, order, number, state, *amounts in rows["uses"]
            },
            "events": {(user, event): (state, _plain(code)) for user, event, state, code in rows["events"]},
            "expense": found["expense"],
        }

    def quote(self, user: str, cart: Cart, coupons: tuple[int, ...]) -> Answer:
        """What these coupons would take off."""
        answer = desk.quote_order(self.services, QuoteBody.model_validate(_order(user, cart, coupons)))
        shares = _shares(answer)
        assert answer["discount"] == sum(sum(lines.values()) for lines in shares.values())
        return "quote", shares, {int(each["coupon_no"]): each["code"] for each in answer["rejected"]}

    def best(self, user: str, cart: Cart) -> int:
        """The most that coupons of the wallet can take off together, which the service is sure of."""
        answer = desk.quote_order(self.services, QuoteBody.model_validate(_order(user, cart, None)))
        assert answer["exact"]
        return int(answer["discount"])

    def lock(self, user: str, order: str, cart: Cart, coupons: tuple[int, ...], ttl: int) -> Answer:
        """Hold coupons."""
        body = LockBody.model_validate(_order(user, cart, coupons) | {"ttl_seconds": ttl})
        return _order_answer(desk.lock_order(self.services, order, body, OPERATOR))

    def pay(self, user: str, order: str, payment: str, paid_at: datetime | None) -> Answer:
        """Redeem what the order holds."""
        body = RedeemBody.model_validate({"user_id": user} | _payment(payment, paid_at))
        return _order_answer(desk.redeem_order(self.services, order, body, OPERATOR))

    def pay_directly(
        self, user: str, order: str, payment: str, paid_at: datetime | None, cart: Cart, coupons: tuple[int, ...]
    ) -> Answer:
        """Redeem with the order in hand."""
        body = RedeemBody.model_validate(_order(user, cart, coupons) | _payment(payment, paid_at))
        return _order_answer(desk.redeem_order(self.services, order, body, OPERATOR))

    def release(self, user: str, order: str) -> Answer:
        """Let an unpaid order's coupons go."""
        body = ReleaseBody.model_validate({"user_id": user, "reason": "buyer"})
        return _order_answer(desk.release_order(self.services, order, body, OPERATOR))

    def unlock(self, user: str, coupon: int, force: bool) -> Answer:
        """Have an operator free a coupon."""
        unlock_coupon(self.services, user, coupon, "a complaint", "key:desk", force=force)
        return ("unlocked",)

    def refund(self, user: str, order: str, refund: str, lines: Lines | None) -> Answer:
        """Return pieces, or everything."""
        body = RefundBody.model_validate({"user_id": user, "refund_no": refund} | _returned(lines))
        answer = desk.refund_order(self.services, order, body, OPERATOR)
        ends = {int(each["coupon_no"]): (each["status"], each["discount_reversed"]) for each in answer["coupons"]}
        return "refund", answer["refund_amount"], answer["discount_reversed"], ends

    def tell(self, user: str, event: str, order: str, kind: str, occurred_at: datetime, more: dict[str, Any]) -> Answer:
        """Take an event of the feed."""
        said = {"event_id": event, "order_no": order, "user_id": user, "type": kind}
        said["occurred_at"] = rfc3339(occurred_at)
        fields = {"payment_no": more.get("payment"), "refund_no": more.get("refund")}
        if kind == "refunded":
            fields |= _returned(more.get("lines"))
        answer = desk.take_order_event(self.services, EventBody.model_validate(said | fields))
        return "event", answer["state"], _plain(answer["code"])

    def transfer(self, user: str, coupon: int, to: str, becomes: int) -> Answer:
        """Give a coupon away."""
        return "transfer", transfer_coupon(self.services, Transfer(user, coupon, to, becomes), operator="key:app")

    def sweep(self) -> Answer:
        """Let go what is overdue."""
        return "swept", release_overdue_locks(self.services)

    def expire(self) -> Answer:
        """End what has run out."""
        return "expired", expire_coupons(self.services, self.services.clock())

    def settle_events(self) -> Answer:
        """Settle events whose order is there, refuse those that waited too long."""
        settle_met_events(self.services)
        return ("settled",)


def _order(user: str, cart: Cart, coupons: tuple[int, ...] | None) -> dict[str, Any]:
    lines = [
        {"line_id": line, "product_id": f"p{line}", "category_id": "c1", "unit_price": price, "quantity": pieces}
        for line, price, pieces in cart
    ]
    named = {} if coupons is None else {"coupon_nos": [str(number) for number in coupons]}
    return {"user_id": user, "currency": "CNY", "channel": "app", "lines": lines} | named


def _payment(payment: str, paid_at: datetime | None) -> dict[str, Any]:
    return {"payment_no": payment, "paid_at": None if paid_at is None else rfc3339(paid_at)}


def _returned(lines: Lines | None) -> dict[str, Any]:
    if lines is None:
        return {"full": True}
    return {"lines": [{"line_id": line, "quantity": pieces} for line, pieces in lines]}


def _shares(answer: dict[str, Any]) -> dict[int, dict[str, int]]:
    return {
        int(each["coupon_no"]): {share["line_id"]: share["amount"] for share in each["allocations"]}
        for each in answer["applied"]
    }


def _order_answer(answer: dict[str, Any]) -> Answer:
    until = answer["locked_until"]
    return (
        "order",
        answer["status"],
        answer["payable"],
        _shares(answer),
        None if until is None else datetime.fromisoformat(until),
        answer["payment_no"],
    )


def _plain(code: str | None) -> str | None:
    """What an event waits for depends on which came first, when it came at the moment of a lock."""
    if code in ("ORDER_NOT_FOUND", "NOT_REDEEMED"):
        return UNMET
    return "INVALID" if code == "VALIDATION_FAILED" else code
