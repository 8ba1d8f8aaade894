"""Who compares what."""

from __future__ import annotations

from coupon_workers.reconciliation.difference import Reader
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.order_differences import read_orders

READERS: dict[ReconKind, Reader] = {
    ReconKind.ORDERS: read_orders,
}
