"""Lotteries, newest first."""

from __future__ import annotations

from typing import Any

from coupon_workers.access.principal import Scope
from coupon_workers.lottery import lottery_reading as reading
from web.console.blueprint import console
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing, cursor_of
from web.console.rendering import render
from web.context import services


@console.get("/lotteries")
@shown_to(Scope.ADMIN)
def lotteries() -> Any:
    """What there is, and how each stands."""
    position = cursor_of(int)
    found = reading.read_page(services(), limit=PAGE_SIZE + 1, before=position[0] if position else None)
    return render("lotteries.html", listing=Listing(found, lambda lottery: [int(lottery.lottery_id)]))
