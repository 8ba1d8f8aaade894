"""Pages of the books with something to see on them."""

from __future__ import annotations

from tests.support.closing import ClosingShop
from tests.support.http_shop import Shop
from tests.support.reconciling import ReconDesk, difference
from tests.support.statement import Comparison, give

DAY = "2026-11-11"
NOON = "2026-11-11T12:00+08:00"
LATER = "2026-11-20T12:00+08:00"


def compared(shop: Shop, discount: int = 1_900) -> str:
    """A day on which the order centre knows of another discount; the finding, which waits for a person."""
    closing = ClosingShop(shop.services)
    closing.at(NOON).buy("o1", closing.template())
    comparison = Comparison(closing).at("2026-11-12T06:00+08:00")
    comparison.give(DAY, f"o1,{closing.user},paid,{15_000 - discount},{discount},CNY")
    [finding] = comparison.reconcile(DAY)
    return finding.finding_id


def findings_page(shop: Shop) -> str:
    """Of money and without."""
    compared(shop)
    ReconDesk(shop.services).record(
        [difference(), difference("template 8", "gate_stock_differs", evidence={"stock": 7, "booked": 9})]
    )
    return "/findings"


def finding_page(shop: Shop) -> str:
    """One that proposes a booking."""
    return f"/findings/{compared(shop)}"


def reconciliations_page(shop: Shop) -> str:
    """Two runs."""
    findings_page(shop)
    return "/reconciliations"


def reconciliation_page(shop: Shop) -> str:
    """One with what it found."""
    return f"/reconciliations/{ReconDesk(shop.services).record([difference()]).run_id}"


def closed(shop: Shop) -> ClosingShop:
    """Two days that were closed, one of them with costs in it, opened again and closed anew."""
    closing = ClosingShop(shop.services)
    for number, name in enumerate(("满100减20 双十一", "Gift")):
        template = closing.template(name=name, template_no=f"t-{number}")
        closing.at(NOON).buy(f"o{number}", template)
        closing.issue(template)
    closing.refund("o1", "r1")
    closing.at(LATER).close(DAY)
    closing.close("2026-11-12")
    closing.reopen(DAY, "a refund was late")
    closing.close(DAY)
    return closing


def daily_closes_page(shop: Shop) -> str:
    """The days."""
    closed(shop)
    return "/daily-closes"


def daily_close_page(shop: Shop) -> str:
    """One with two closings."""
    closed(shop)
    return f"/daily-closes/{DAY}"


def ledger_page(shop: Shop) -> str:
    """Bookings of a day, the third a correction."""
    closing = closed(shop)
    coupon = closing.at(NOON).buy("o7", closing.template(name="Late", template_no="t-7"))
    closing.at(LATER).adjust("desk-17", coupon, -100, order="o7")
    return "/ledger"


def statements_page(shop: Shop) -> str:
    """Of a day, twice."""
    compared(shop)
    give(shop.services, "2026-11-10")
    return "/order-statements"


def statement_page(shop: Shop) -> str:
    """One that was compared."""
    compared(shop)
    return f"/order-statements/{DAY}"
