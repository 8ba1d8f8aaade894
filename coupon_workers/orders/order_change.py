"""What a change of an order leaves behind for whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coupon_workers.orders.order_row import Row

AWAITED = """
    EXISTS (SELECT FROM order_event
             WHERE user_id = :user_id AND order_no = :order_no AND state = 'waiting') AS awaited"""
"""A column for the statement of a change: whether events have waited for it."""


class OrderChange(NamedTuple):
    """The order with its uses after the change; ``awaited``: events of the order have waited for it."""

    order: Row
    uses: Sequence[Row]
    awaited: bool = False
