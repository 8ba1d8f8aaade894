"""Every view of the shop: importing this module gives the blueprint all of them."""

from __future__ import annotations

from web.shop import claiming, drawing, ordering, returning
from web.shop.blueprint import shop

__all__ = ["claiming", "drawing", "ordering", "returning", "shop"]
