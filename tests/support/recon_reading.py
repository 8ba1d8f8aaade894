"""What the readers of stock, state and batches find, in few words; and findings as their repairs are given them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from coupon_workers.campaigns.batch_run import run_step
from coupon_workers.campaigns.batch_sweep import sweep_batches
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.reconciliation.batch_differences import batch_differences
from coupon_workers.reconciliation.difference import Difference
from coupon_workers.reconciliation.safe_repair import SAFE_REPAIRS
from coupon_workers.reconciliation.state_differences import state_differences
from coupon_workers.reconciliation.stock_differences import stock_differences
from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.runtime.services import Services

BRIEFLY_S = 0.3


def differences(
    services: Services, as_of: datetime | None = None, *, patience_s: float = BRIEFLY_S
) -> list[Difference]:
    """All that the three readers find as of a moment, else as of now."""
    at = as_of or services.clock()
    return [
        *stock_differences(services, at, None, patience_s=patience_s).differences,
        *state_differences(services, at, None).differences,
        *batch_differences(services, at, None).differences,
    ]


def found(services: Services, as_of: datetime | None = None) -> list[tuple[str, str]]:
    """Class and subject of each."""
    return [(each.finding_class, each.subject) for each in differences(services, as_of)]


def only(services: Services) -> Difference:
    """The one difference there is."""
    [difference] = differences(services)
    return difference


def repair(services: Services, difference: Difference, operator: str = "reconciliation") -> dict[str, Any]:
    """Do what a difference proposes, in a transaction; what was done."""
    assert difference.repair is not None
    with services.engine.begin() as connection:
        return SAFE_REPAIRS[difference.repair](connection, services, asdict(difference), services.clock(), operator)


def work(services: Services) -> list[str]:
    """Take what lies in the post, as workers do that are idle; the names of the tasks."""

    calls: dict[str, Any] = {
        "preheat_template": lambda *args: preheat_template(services, *args),
        "settle_claims": lambda *args: drain(services, *args),
        "expire_coupons": lambda: expire_coupons(services, services.clock()),
        "issue_shard": lambda *args: run_step(services, *args),
        "sweep_batches": lambda: sweep_batches(services),
        "sweep_risk": lambda: sweep_risk(services),
    }
    post: Any = services.post
    done = []
    while post.sent:
        task = post.sent.pop(0)
        done.append(task.name)
        calls[task.name](*task.args)
    return done
