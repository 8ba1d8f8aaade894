"""Repairs of an order and its money, each in the transaction that ends its finding (docs/reconciliation.md).

Payments, refunds and adjustments that are made here bear the finding's number, ``finding-17``: with it each is made
once, and its trace leads back. All raise ``Conflict`` or ``NotFound`` when things no longer stand as they were found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.finance.adjustment import Adjustment, book
from coupon_workers.finance.finding_booking import books_finding_of
from coupon_workers.orders.money import allocate
from coupon_workers.orders.order_answer import refund_answer
from coupon_workers.orders.order_event import settle_waiting
from coupon_workers.orders.order_request import RedeemBody, RefundBody
from coupon_workers.orders.order_row import hold_order, read_uses
from coupon_workers.orders.redeem import redeem
from coupon_workers.orders.refund import refund
from coupon_workers.runtime.services import Services

Row = Mapping[str, Any]
"""A row of ``recon_finding``."""

_ADJUSTED = text(f"""
    SELECT coalesce(sum(CASE WHEN debit_account = 'coupon_expense' THEN amount_minor ELSE -amount_minor END), 0)
      FROM ledger_entry e
     WHERE user_id = :user_id AND order_no = :order_no AND kind = 'adjustment' AND currency = :currency
       AND reference <> ALL (CAST(:own AS text[])) AND NOT {books_finding_of("state", "e")}
""")

_NET = text(f"""
    SELECT coalesce(sum(CASE 'coupon_expense' WHEN debit_account THEN amount_minor ELSE - amount_minor END), 0)
      FROM ledger_entry e WHERE user_id = :user_id AND order_no = :order_no AND coupon_id = :coupon_id
       AND NOT (kind = 'adjustment' AND reference = :reference) AND NOT {books_finding_of("orders", "e")}
""")


def redeem_order(
    connection: Connection, services: Services, finding: Row, now: datetime, operator: str
) -> dict[str, Any]:
    """Redeem an order that was paid elsewhere, as a payment of now: the statement has no instant.

    Raises ``Conflict`` ``LOCK_EXPIRED``, ``ALREADY_REDEEMED``; ``NotFound`` ``ORDER_NOT_FOUND``.
    """
    said = RedeemBody.model_construct(
        user_id=finding["user_id"],
        payment_no=number_of(finding),
        paid_at=None,
        lines=None,
        currency=None,
        coupon_nos=None,
    )
    change = redeem(connection, now, finding["order_no"], said, operator)
    if change.awaited:
        settle_waiting(connection, now, finding["user_id"], finding["order_no"])
    order = change.order
    return {
        "order_no": order["order_no"],
        "payment_no": order["payment_no"],
        "discount": order["discount_minor"],
        "payable": order["payable_minor"],
    }


def refund_order(
    connection: Connection, services: Services, finding: Row, now: datetime, operator: str
) -> dict[str, Any]:
    """Return all that is left of an order.

    Raises ``Conflict`` ``NOT_REDEEMED``, ``NOTHING_LEFT``, ``NUMBER_TAKEN``; ``NotFound`` ``ORDER_NOT_FOUND``.
    """
    everything = RefundBody.model_construct(
        user_id=finding["user_id"], refund_no=number_of(finding), lines=None, full=True
    )
    try:
        return refund_answer(refund(connection, now, finding["order_no"], everything, operator))
    except InvalidInput as error:
        raise _taken(finding) from error


def book_amount(
    connection: Connection, services: Services, finding: Row, now: datetime, operator: str
) -> dict[str, Any]:
    """Book what is at stake: of the coupon that the finding names, else of all on the order.

    Raises what ``book_missing`` and ``book_difference`` raise.
    """
    repair = book_difference if finding["coupon_id"] is None else book_missing
    return repair(connection, services, finding, now, operator)


def book_missing(
    connection: Connection, services: Services, finding: Row, now: datetime, operator: str
) -> dict[str, Any]:
    """Book what the ledger lacks of one coupon on an order, or has too much of it.

    Raises ``Conflict`` ``FINDING_OUTDATED`` when more was booked of it since, ``NUMBER_TAKEN``; ``NotFound``
    ``COUPON_NOT_FOUND``.
    """
    hold_order(connection, finding["user_id"], finding["order_no"])
    evidence = finding["evidence"]
    asked = Adjustment(
        reference=number_of(finding),
        user_id=finding["user_id"],
        order_no=finding["order_no"],
        coupon_id=finding["coupon_id"],
        amount_minor=evidence["missing_minor"],
        reason=f"{finding['finding_class']}: {finding['subject']}",
    )
    if int(connection.execute(_NET, asdict(asked)).scalar_one()) != evidence["net_minor"]:
        raise Conflict("FINDING_OUTDATED", "more was booked of it since: reconcile again")
    return _booked(connection, now, finding, [asked], operator)


def book_difference(
    connection: Connection, services: Services, finding: Row, now: datetime, operator: str
) -> dict[str, Any]:
    """Book the amount at stake on the order's coupons, in proportion to what each took off.

    Raises ``Conflict`` ``FINDING_OUTDATED`` when the order's discount was adjusted since, ``NUMBER_TAKEN``;
    ``NotFound`` ``ORDER_NOT_FOUND``.
    """
    order = hold_order(connection, finding["user_id"], finding["order_no"])
    if order is None:
        raise NotFound("ORDER_NOT_FOUND", "this user has no order of that number with coupons")
    uses = read_uses(connection, order)
    asked = _adjustments(finding, uses)
    _check_as_found(connection, finding, order, [each.reference for each in asked])
    return _booked(connection, now, finding, asked, operator)


def _booked(
    connection: Connection, now: datetime, finding: Row, asked: Sequence[Adjustment], operator: str
) -> dict[str, Any]:
    try:
        booked = [book(connection, now, each, operator) for each in asked]
    except InvalidInput as error:
        raise _taken(finding) from error
    return {
        "currency": finding["currency"],
        "adjustments": [
            {"reference": each.reference, "coupon_no": str(each.coupon_id), "amount": each.amount_minor}
            for each in asked
        ],
        "entries": [str(entry["entry_id"]) for entry in booked],
    }


def number_of(finding: Row) -> str:
    """The number of what is done about a finding."""
    return f"finding-{finding['finding_id']}"


def shares_of(total: int, weights: Sequence[int]) -> list[int]:
    """``total``, of either sign, in proportion to ``weights`` by largest remainder; they sum to it, whatever its size.

    Raises ``ValueError`` for weights that are all 0 or below.
    """
    whole, rest = divmod(abs(total), sum(weights))
    sign = -1 if total < 0 else 1
    return [sign * (whole * weight + share) for weight, share in zip(weights, allocate(rest, weights), strict=True)]


def _adjustments(finding: Row, uses: Sequence[Row]) -> list[Adjustment]:
    """One for each coupon that has a share; where there are several their references go on with the coupon's number."""
    shares = shares_of(finding["amount_minor"], [use["discount_minor"] for use in uses])
    number = number_of(finding)
    return [
        Adjustment(
            reference=number if len(uses) == 1 else f"{number}-{use['coupon_id']}",
            user_id=finding["user_id"],
            order_no=finding["order_no"],
            coupon_id=use["coupon_id"],
            amount_minor=share,
            reason=f"{finding['finding_class']}: {finding['subject']}",
        )
        for use, share in zip(uses, shares, strict=True)
        if share
    ]


def _check_as_found(connection: Connection, finding: Row, order: Row, own: Sequence[str]) -> None:
    named = {name: order[name] for name in ("user_id", "order_no", "currency")} | {"own": list(own)}
    adjusted = int(connection.execute(_ADJUSTED, named).scalar_one())
    found = finding["evidence"]["here"]
    if (order["discount_minor"], adjusted) != (found["discount"], found["adjusted"]):
        raise Conflict(
            "FINDING_OUTDATED",
            "what the order took off was adjusted since: reconcile again",
            discount=order["discount_minor"] + adjusted,
        )


def _taken(finding: Row) -> Conflict:
    return Conflict("NUMBER_TAKEN", f"{number_of(finding)} belongs to something else that was done by hand")
