"""Who compares what."""

from __future__ import annotations

from coupon_workers.reconciliation.difference import Reader
from coupon_workers.reconciliation.kind import ReconKind

READERS: dict[ReconKind, Reader] = {}
