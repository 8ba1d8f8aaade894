"""Who compares what."""

from __future__ import annotations

from coupon_workers.reconciliation.batch_differences import batch_differences
from coupon_workers.reconciliation.code_differences import code_differences
from coupon_workers.reconciliation.difference import Reader
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.order_differences import read_orders
from coupon_workers.reconciliation.state_differences import state_differences
from coupon_workers.reconciliation.stock_differences import stock_differences

READERS: dict[ReconKind, Reader] = {
    ReconKind.STOCK: stock_differences,
    ReconKind.STATE: state_differences,
    ReconKind.ORDERS: read_orders,
    ReconKind.BATCHES: batch_differences,
    ReconKind.CODES: code_differences,
}
