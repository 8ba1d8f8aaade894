"""Which repair is done how, of those that move no money."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from coupon_workers.reconciliation.batch_repair import wake_batch
from coupon_workers.reconciliation.code_repair import wake_codes
from coupon_workers.reconciliation.order_repair import free_coupon, release_order
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.template_repair import (
    preheat,
    recount_template,
    ring_bell,
    sweep_expired,
    sweep_overdue_reviews,
)
from coupon_workers.runtime.services import Services

SafeRepair = Callable[[Connection, Services, Mapping[str, Any], datetime, str], dict[str, Any]]
"""Given the row of ``recon_finding``, the moment and who repairs: what was done. It is done in the caller's
transaction; raises ``Conflict`` or ``NotFound`` when things have changed, and ``StoreUnavailable``."""

SAFE_REPAIRS: dict[RepairName, SafeRepair] = {
    RepairName.RECOUNT_TEMPLATE: recount_template,
    RepairName.PREHEAT: preheat,
    RepairName.RING_BELL: ring_bell,
    RepairName.WAKE_BATCH: wake_batch,
    RepairName.WAKE_CODES: wake_codes,
    RepairName.SWEEP_EXPIRED: sweep_expired,
    RepairName.SWEEP_RISK: sweep_overdue_reviews,
    RepairName.RELEASE_ORDER: release_order,
    RepairName.FREE_COUPON: free_coupon,
}
