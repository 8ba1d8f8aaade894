"""Yesterday, as if the shop had been open: coupons that were used, a statement that differs, a closed day.

What happened yesterday cannot be had over HTTP today. The coupons are claimed like all others and made older, and their
orders are paid by the core's own calls on yesterday's clock; statement, comparison and close are asked over HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import text

from coupon_workers.demo.stage import Stage
from coupon_workers.finance.business_day import SETTLING
from coupon_workers.load.order_story import Buyer, Call
from coupon_workers.orders.order_desk import redeem_order, refund_order
from coupon_workers.orders.order_request import RedeemBody, RefundBody
from coupon_workers.runtime.database import transaction

TIMEZONE = "Asia/Shanghai"
"""That of the demo's templates: theirs is the business day."""

RETURNED_EVERY = 4
HEADER = "order_no,user_id,status,paid_amount,discount_amount,currency"

_AGED = (
    text("""
        UPDATE coupon SET valid_from = valid_from - CAST(:older AS interval),
                          claimed_at = claimed_at - CAST(:older AS interval),
                          issued_at = issued_at - CAST(:older AS interval),
                          updated_at = updated_at - CAST(:older AS interval)
         WHERE coupon_id = ANY(CAST(:coupon_ids AS bigint[]))
    """),
    text("""
        UPDATE coupon_flow SET at = at - CAST(:older AS interval)
         WHERE coupon_id = ANY(CAST(:coupon_ids AS bigint[]))
    """),
)


def noon_yesterday(now: datetime) -> datetime:
    """Of the latest business day whose books can be closed: just after midnight they wait a little.

    Noon, as an order near midnight might be on another day's statement, which would be waited for.
    """
    there = (now - SETTLING).astimezone(ZoneInfo(TIMEZONE))
    return datetime.combine(there.date() - timedelta(days=1), time(12), there.tzinfo).astimezone(UTC)


def spend_yesterday(stage: Stage, coupons: Sequence[tuple[str, int]], now: datetime, at: datetime) -> list[str]:
    """Make the coupons (user and number), claimed just before ``now``, so much older that each is used on an order of
    ``at``; some are returned.

    Returns the lines of the order centre's statement. Raises ``StoreUnavailable``.
    """
    with transaction(stage.services.engine) as connection:
        for statement in _AGED:
            aged = {"coupon_ids": [coupon_id for _, coupon_id in coupons], "older": now - at}
            connection.execute(statement, aged)
    return [_order(stage, number, coupon, at) for number, coupon in enumerate(coupons)]


def close_yesterday(stage: Stage, lines: list[str], at: datetime) -> date:
    """Hand in a statement that has one order less and one amount more, compare, and close the day; which day.

    Raises ``ClientError``.
    """
    day = at.astimezone(ZoneInfo(TIMEZONE)).date()
    told = [_overpaid(lines[0]), *lines[2:], f"{stage.run}-unheard-of,ann,paid,9900,1000,CNY"]
    stage.client.orders.put_statement(f"{day}", "".join(f"{line}\n" for line in (HEADER, *told)).encode())
    office = stage.client.back_office
    run = office.reconcile("orders", date=f"{day}")["run_id"]
    stage.wait_for("the orders are not compared", lambda: office.reconciliation(run)["status"] == "done")
    if office.close_day(f"{day}")["closed_by"] == "schedule":
        office.reopen_day(f"{day}", "the scheduler was quicker than the demo")
        office.close_day(f"{day}")
    return day


def _order(stage: Stage, number: int, coupon: tuple[str, int], at: datetime) -> str:
    services = replace(stage.services, clock=lambda: at)
    user_id, coupon_id = coupon
    buyer = Buyer(user_id, str(coupon_id), f"{stage.run}-past-{number}", at)
    answer = redeem_order(services, buyer.order_no, RedeemBody.model_validate(_sent(buyer.pay_directly())), "key:demo")
    status = "paid"
    if number % RETURNED_EVERY == RETURNED_EVERY - 1:
        refund_order(services, buyer.order_no, RefundBody.model_validate(_sent(buyer.refund(1, None))), "key:demo")
        status = "refunded"
    return _line(buyer, status, answer)


def _sent(call: Call) -> Any:
    """The body as a front reads it."""
    return json.loads(json.dumps(call[2]))


def _line(buyer: Buyer, status: str, answer: dict[str, Any]) -> str:
    return f"{buyer.order_no},{buyer.user_id},{status},{answer['payable']},{answer['discount']},CNY"


def _overpaid(line: str) -> str:
    order_no, user_id, status, paid, discount, currency = line.split(",")
    return ",".join((order_no, user_id, status, str(int(paid) + 100), discount, currency))
