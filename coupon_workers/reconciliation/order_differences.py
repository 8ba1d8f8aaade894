"""Reading a business day's orders against the order centre's statements, as of a moment (docs/reconciliation.md)."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection

from coupon_workers.checking.reading import snapshot
from coupon_workers.reconciliation.difference import MOST, Difference, Reading
from coupon_workers.reconciliation.order_sql import DAY, REDEEMED, UNREDEEMED
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.services import Services

WAITS = "waits"

_RETURNED = ("nothing", "a part", "everything")
"""What was returned of an order, in words."""


def read_orders(services: Services, as_of: datetime, day: date | None) -> Reading:
    """What differs between the orders of ``day`` and the statements that could have them. Reads only.

    Unjudged are orders around midnight that may be in a statement to come. Raises ``StoreUnavailable``.
    """
    if day is None:
        raise ValueError("orders are compared day by day")
    named = {"day": day, "as_of": as_of, "most": MOST + 1}
    with snapshot(services) as connection:
        # Every table is met by a key or an index; those of a young shop have no statistics that say so.
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        return _read(connection, named)


def _read(connection: Connection, named: dict[str, Any]) -> Reading:
    about = connection.execute(DAY, named).one()
    subject = f"day {named['day']}"
    differences: list[Difference] = []
    unjudged = set()
    if about.revision is None and about.forgotten:
        unjudged.add(subject)
    elif about.revision is None and about.order_count and about.over:
        evidence = {"statement": None, "date": str(named["day"])}
        differences.append(Difference(finding_class="statement_missing", subject=subject, evidence=evidence))
    for row in connection.execute(REDEEMED, named):
        if row.finding_class == WAITS:
            unjudged.add(_subject(row))
        else:
            differences += _of_redeemed(row)
    differences += map(_of_unredeemed, connection.execute(UNREDEEMED, named))
    return Reading(differences[: MOST + 1], about.order_count + about.row_count, frozenset(unjudged))


def _of_redeemed(row: Any) -> list[Difference]:
    found = [(each, _MONEY.get(each) or _RETURN[each]) for each in (row.finding_class, row.refund_class) if each]
    return [
        Difference(
            finding_class=finding_class,
            subject=_subject(row),
            currency=row.currency,
            template_id=row.template_id,
            user_id=row.user_id,
            order_no=row.order_no,
            **say(row),
        )
        for finding_class, say in found
    ]


def _without_order(row: Any) -> dict[str, Any]:
    there = {"date": str(row.business_date), "status": row.status} if row.status else None
    return {
        "evidence": {"here": _amounts(row), "there": there},
        "amount_minor": int(row.discount_minor - row.reversed_minor),
        "repair": RepairName.REFUND_ORDER,
    }


def _currency(row: Any) -> dict[str, Any]:
    return {"evidence": _both(row), "amount_minor": row.discount_minor}


def _discount(row: Any) -> dict[str, Any]:
    # Returned whole on both sides: nothing of what was adjusted may be left.
    due = row.discount_minor if row.returned == row.returned_there == 2 else row.discount_there
    return {
        "evidence": _both(row),
        "amount_minor": due - int(row.discount_minor + row.adjusted_minor),
        "repair": RepairName.BOOK_ADJUSTMENT,
    }


def _paid(row: Any) -> dict[str, Any]:
    return {"evidence": _both(row), "amount_minor": row.paid_there - row.payable_minor}


def _missing_here(row: Any) -> dict[str, Any]:
    return {
        "evidence": _returns(row, row.returned),
        "amount_minor": int(row.discount_minor - row.reversed_minor),
        # A part: the statement does not say of which pieces.
        "repair": RepairName.REFUND_ORDER if row.status == "refunded" else None,
    }


def _missing_there(row: Any) -> dict[str, Any]:
    return {"evidence": _returns(row, row.returned_then), "amount_minor": int(row.reversed_minor)}


_MONEY = {
    "redeemed_without_order": _without_order,
    "currency_differs": _currency,
    "discount_differs": _discount,
    "paid_differs": _paid,
}
_RETURN = {"refund_missing_here": _missing_here, "refund_missing_there": _missing_there}


def _of_unredeemed(row: Any) -> Difference:
    return Difference(
        finding_class="discount_without_redemption",
        subject=_subject(row),
        evidence={
            "here": {"status": "not redeemed" if row.known else "unknown"},
            "there": _there(row) | {"status": row.status},
        },
        repair=RepairName.REDEEM_ORDER if row.known else None,
        amount_minor=row.discount_there,
        currency=row.currency_there,
        user_id=row.user_id,
        order_no=row.order_no,
    )


def _both(row: Any) -> dict[str, Any]:
    return {"here": _amounts(row), "there": _there(row)}


def _amounts(row: Any) -> dict[str, Any]:
    """``discount`` is as it was redeemed, ``adjusted`` what was booked beside it since."""
    return {
        "discount": row.discount_minor,
        "adjusted": int(row.adjusted_minor),
        "payable": row.payable_minor,
        "currency": row.currency,
        "redeemed_at": rfc3339(row.redeemed_at),
    }


def _there(row: Any) -> dict[str, Any]:
    return {
        "date": str(row.business_date),
        "discount": row.discount_there,
        "paid": row.paid_there,
        "currency": row.currency_there,
    }


def _returns(row: Any, returned: int) -> dict[str, Any]:
    there = {"date": str(row.business_date), "status": row.status}
    return {"here": {"returned": _RETURNED[returned], "discount": row.discount_minor}, "there": there}


def _subject(row: Any) -> str:
    return f"order {row.order_no} of {row.user_id}"
