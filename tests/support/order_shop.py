"""A shop whose users hold coupons: issuing them, and asking what an order centre asks, in short words for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from coupon_workers.errors import Conflict, CouponWorkersError, InvalidInput, NotFound
from coupon_workers.orders import order_desk as desk
from coupon_workers.orders.order_reading import read_whole_order
from coupon_workers.orders.order_request import EventBody, LockBody, QuoteBody, RedeemBody, RefundBody, ReleaseBody
from coupon_workers.orders.unlock import unlock_coupon
from coupon_workers.orders.unlock_sweep import release_overdue_locks
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.services import Services
from coupon_workers.templates.terms import RefundRule, StackingRule, TemplateScope
from tests.support.template import insert_template

START = datetime.fromisoformat("2026-11-11T04:00:00+00:00")
"""When the shop opens: a Wednesday noon in Shanghai."""

Json = dict[str, Any]


def line(line_id: str, unit_price: int, quantity: int = 1, **more: Any) -> Json:
    """A line of an order, of product ``p<line_id>`` in category ``c1`` unless ``more`` says otherwise."""
    return {
        "line_id": line_id,
        "product_id": f"p{line_id}",
        "category_id": "c1",
        "unit_price": unit_price,
        "quantity": quantity,
    } | more


CART = (line("1", 10_000), line("2", 5_000))


@dataclass
class ShopClock:
    """The time of the shop: it stands still until a test moves it."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **duration: float) -> datetime:
        """Let time pass: ``minutes=15``."""
        self.now += timedelta(**duration)
        return self.now


@dataclass
class OrderShop:
    """Services whose clock the test moves, and the calls of an order centre for user ``ann``."""

    services: Services
    clock: ShopClock = field(default_factory=ShopClock)
    user: str = "ann"
    _requests: int = 0

    def __post_init__(self) -> None:
        self.services = replace(self.services, clock=self.clock)

    def template(self, **columns: Any) -> int:
        """A template of 20.00 CNY off from 100.00; ``scope=``, ``stacking=``, ``refund=`` as API.md has them."""
        for name, kind in (("scope", TemplateScope), ("stacking", StackingRule), ("refund", RefundRule)):
            if name in columns:
                columns[name] = kind.model_validate(columns[name]).model_dump(mode="json", by_alias=True)
        columns.setdefault("template_id", self.services.next_id(0))
        columns.setdefault("total_quantity", 1_000)
        return insert_template(self.services.engine, **columns)

    def issue(self, template_id: int, user: str | None = None, **columns: Any) -> int:
        """A coupon of the user, valid for a week from an hour ago, with its flow; its number."""
        self._requests += 1
        coupon_id = self.services.next_id(0)
        named = {
            "user_id": user or self.user,
            "coupon_id": coupon_id,
            "template_id": template_id,
            "claim_seq": self._requests,
            "request_id": f"r{self._requests}",
            "template_version": 1,
            "valid_from": self.clock.now - timedelta(hours=1),
            "valid_to": self.clock.now + timedelta(days=7),
            "source": "claim",
            "claimed_at": self.clock.now,
        } | columns
        with self.services.engine.begin() as connection:
            names = ", ".join(named)
            connection.execute(
                text(f"INSERT INTO coupon ({names}) VALUES ({', '.join(':' + name for name in named)})"), named
            )
            connection.execute(
                text(
                    "INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator)"
                    " VALUES (:user_id, :coupon_id, 1, 'issue', 'unused', 'claim')"
                ),
                named,
            )
            connection.execute(
                text(
                    "UPDATE coupon_template SET issued_quantity = issued_quantity + 1,"
                    " granted_quantity = granted_quantity + :granted WHERE template_id = :template_id"
                ),
                named | {"granted": int(named["source"] in ("batch", "code", "lottery", "manual"))},
            )
        return coupon_id

    def body(self, coupons: Sequence[int] | None = None, lines: Sequence[Json] = CART, **more: Any) -> Json:
        """An order body of the user."""
        named = {} if coupons is None else {"coupon_nos": [str(coupon) for coupon in coupons]}
        return {"user_id": self.user, "currency": "CNY", "channel": "app", "lines": list(lines)} | named | more

    def quote(self, coupons: Sequence[int] | None = None, lines: Sequence[Json] = CART, **more: Any) -> Json:
        """Quote an order."""
        return desk.quote_order(self.services, QuoteBody.model_validate(self.body(coupons, lines, **more)))

    def lock(self, order: str, coupons: Sequence[int], lines: Sequence[Json] = CART, **more: Any) -> Json:
        """Lock coupons for an order."""
        return desk.lock_order(
            self.services, order, LockBody.model_validate(self.body(coupons, lines, **more)), "key:orders"
        )

    def pay(self, order: str, payment: str = "pay-1", **more: Any) -> Json:
        """Redeem an order's coupons by its payment."""
        if isinstance(more.get("paid_at"), datetime):
            more["paid_at"] = rfc3339(more["paid_at"])
        body = {"user_id": self.user, "payment_no": payment} | more
        return desk.redeem_order(self.services, order, RedeemBody.model_validate(body), "key:orders")

    def pay_directly(
        self, order: str, coupons: Sequence[int], lines: Sequence[Json] = CART, payment: str = "pay-1", **more: Any
    ) -> Json:
        """Redeem without a lock."""
        return self.pay(order, payment, **self.body(coupons, lines, **more))

    def release(self, order: str, reason: str = "buyer") -> Json:
        """Let an order's coupons go."""
        body = ReleaseBody.model_validate({"user_id": self.user, "reason": reason})
        return desk.release_order(self.services, order, body, "key:orders")

    def unlock(self, coupon_id: int, *, force: bool = True) -> Json:
        """Have an operator free the coupon; where it stands then."""
        unlock_coupon(self.services, self.user, coupon_id, "a complaint", "key:desk", force=force)
        return {"status": self.status(coupon_id)}

    def refund(self, order: str, refund: str, lines: Sequence[tuple[str, int]] | None = None) -> Json:
        """Return pieces of lines, or everything."""
        what: Json = {"full": True}
        if lines is not None:
            what = {"lines": [{"line_id": line_id, "quantity": quantity} for line_id, quantity in lines]}
        body = RefundBody.model_validate({"user_id": self.user, "refund_no": refund} | what)
        return desk.refund_order(self.services, order, body, "key:orders")

    def tell(self, event: str, order: str, kind: str, occurred_at: datetime, **more: Any) -> Json:
        """An event of the order centre's feed."""
        body = {"event_id": event, "order_no": order, "user_id": self.user, "type": kind}
        body |= {"occurred_at": rfc3339(occurred_at)} | more
        return desk.take_order_event(self.services, EventBody.model_validate(body))

    def read(self, order: str) -> Json:
        """The whole order."""
        return read_whole_order(self.services, self.user, order)

    def sweep(self) -> int:
        """Release what is overdue; how many orders."""
        return release_overdue_locks(self.services)

    def rows(self, statement: str, **named: Any) -> list[tuple[Any, ...]]:
        """What the database answers."""
        with self.services.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement), named)]

    def execute(self, statement: str, **named: Any) -> None:
        """Change the database behind everyone's back."""
        with self.services.engine.begin() as connection:
            connection.execute(text(statement), named)

    def status(self, coupon_id: int) -> str:
        """Where the coupon stands."""
        [(status,)] = self.rows("SELECT status FROM coupon WHERE coupon_id = :id", id=coupon_id)
        return str(status)

    def flow(self, coupon_id: int) -> list[tuple[str, str, str | None]]:
        """(action, to status, order) of the coupon's steps after its issue."""
        return [
            (action, status, order)
            for action, status, order in self.rows(
                "SELECT action, to_status, order_no FROM coupon_flow WHERE coupon_id = :id ORDER BY flow_no",
                id=coupon_id,
            )
        ][1:]

    def ledger(self) -> list[tuple[str, str, str, int]]:
        """(kind, debit, credit, amount) of every booking, in order."""
        return [
            (kind, debit, credit, amount)
            for kind, debit, credit, amount in self.rows(
                "SELECT kind, debit_account, credit_account, amount_minor FROM ledger_entry ORDER BY entry_id"
            )
        ]

    def expense(self) -> int:
        """What coupons have cost so far: debits less credits of ``coupon_expense``."""
        [(expense,)] = self.rows(
            "SELECT coalesce(sum(amount_minor) FILTER (WHERE debit_account = 'coupon_expense'), 0)"
            " - coalesce(sum(amount_minor) FILTER (WHERE credit_account = 'coupon_expense'), 0) FROM ledger_entry"
        )
        return int(expense)


def refused(call: Callable[[], Any]) -> tuple[str, Json]:
    """The code and evidence of the refusal that ``call`` meets; the fields, for what is invalid."""
    try:
        answer = call()
    except Conflict as error:
        return error.code, dict(error.evidence)
    except NotFound as error:
        return error.code, {}
    except InvalidInput as error:
        return "INVALID", dict(error.errors)
    except CouponWorkersError as error:
        return type(error).__name__, {}
    raise AssertionError(f"it was not refused, but answered {answer}")
