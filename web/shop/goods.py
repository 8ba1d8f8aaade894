"""What the shop sells, and a cart of it as an order that the core takes."""

from __future__ import annotations

from typing import Any, NamedTuple

from werkzeug.datastructures import MultiDict

from web.console.language import N_

CURRENCY = "CNY"
CHANNEL = "h5"
MOST_PIECES = 99


class Good(NamedTuple):
    """A product, with a picture of its id in ``static``; ``price_minor`` in minor units of ``CURRENCY``."""

    product_id: str
    name: str
    price_minor: int


GOODS = (
    Good("tea", N_("Green tea"), 6_800),
    Good("lamp", N_("Desk lamp"), 12_900),
    Good("shoes", N_("Running shoes"), 39_900),
)


def pieces_of(form: MultiDict[str, str]) -> dict[str, int]:
    """How many of each product ``form`` wants, those that it does not want left out."""
    wanted = {good.product_id: form.get(good.product_id, "") for good in GOODS}
    numbers = {name: int(text) for name, text in wanted.items() if text.isascii() and text.isdigit() and len(text) <= 2}
    return {name: number for name, number in numbers.items() if 0 < number <= MOST_PIECES}


def order_of(user_id: str, pieces: dict[str, int]) -> dict[str, Any]:
    """The cart as the body of an order."""
    lines = [
        {
            "line_id": good.product_id,
            "product_id": good.product_id,
            "unit_price": good.price_minor,
            "quantity": pieces[good.product_id],
        }
        for good in GOODS
        if good.product_id in pieces
    ]
    return {"user_id": user_id, "currency": CURRENCY, "channel": CHANNEL, "lines": lines}
