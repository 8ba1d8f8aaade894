"""Lotteries, newest first."""

from __future__ import annotations

from typing import Any

from coupon_workers.access.principal import Scope
from coupon_workers.lottery import lottery_reading as reading
from web.console.blueprint import console
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.rendering import render
from web.context import services


@console.get("/lotteries")
@shown_to(Scope.ADMIN)
def lotteries() -> Any:
    """What there is, and how each stands."""
    found = reading.read_page(services(), limit=PAGE_SIZE + 1, before=page_before())
    return render("lotteries.html", listing=Listing(found, lambda lottery: [int(lottery.lottery_id)]))
