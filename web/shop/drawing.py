"""Turning a wheel: as a form that is answered with the page, or asked by the page's script."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from coupon_workers.wallet.wallet import read_wallet
from web.context import services
from web.shop.blueprint import page, shop
from web.shop.claiming import SHOWN, show_front
from web.shop.lottery_wheel import draw_for_visitor
from web.shop.visitor import for_visitors, user


@shop.post("/draws")
@for_visitors
def turn() -> Any:
    """Draw, and show what came; loaded again, it is the same draw."""
    return show_front(draw_for_visitor())


@shop.post("/data/draws")
@for_visitors
def turn_by_script() -> Any:
    """The same for the page's script, which asks again until the coupon is there. ``next``: the next draw's id."""
    return draw_for_visitor()._asdict() | {"next": uuid4().hex}


@shop.get("/wallet")
@for_visitors
def wallet() -> Any:
    """The coupons alone, for the page's script."""
    return page("wallet.html", coupons=read_wallet(services(), user(), limit=SHOWN).items)
