"""The rows of the table, in order. A new one is a file with a ``ROW``, and a line here."""

from __future__ import annotations

from bench import (
    claim_batch_row,
    claim_center_row,
    claim_view_row,
    drain_row,
    durable_latency_row,
    expiry_row,
    fanout_row,
    order_pair_row,
    outstanding_row,
    reconciliation_row,
    risk_row,
    wallet_row,
)
from bench.row import Row

ROWS: dict[str, Row] = {
    module.ROW.name: module.ROW
    for module in (
        claim_view_row,
        claim_batch_row,
        risk_row,
        drain_row,
        durable_latency_row,
        outstanding_row,
        order_pair_row,
        wallet_row,
        claim_center_row,
        fanout_row,
        expiry_row,
        reconciliation_row,
    )
}
