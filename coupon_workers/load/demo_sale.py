"""The sale that ``coupon-workers demo`` holds: one template everybody wants, and some quiet ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from coupon_workers.load.claim_call import ClaimCall
from coupon_workers.load.claim_plan import ClaimPlan, TemplateShare
from coupon_workers.runtime.clock import rfc3339

HOT_STOCK = 2_000
CLAIMS_A_UNIT = 12
"""With fewer claims for each unit of the hot template its stock is smaller, so that it sells out all the same."""

FEWEST_CLAIMS = 1_000
"""With fewer the small template does not sell out."""

USERS = 6_000
"""Enough that the hot template sells out several times over, few enough that most users come more than once."""

PAUSE_AFTER_SHARE = 0.12
PAUSE_SHARE = 0.08
"""Parts of all claims: the hot template is paused before it is sold out, and the pause is felt by many."""


@dataclass(frozen=True, slots=True)
class DemoTemplate:
    """``body`` of ``POST /v1/templates``; ``weight`` among all claims; ``expected`` coupons, None where it is open.

    ``paused``: it is the one that is paused in the middle. The units of claims that the pause rejects may come back
    after the last claim: ``late_claims`` then take them.
    """

    body: dict[str, Any]
    weight: int
    expected: int | None
    paused: bool = False


def demo_templates(now: datetime, run: str, claims: int) -> list[DemoTemplate]:
    """The templates for ``claims`` claims, the hot one first; ``run`` keeps the numbers of two demos apart."""
    hot_stock = min(HOT_STOCK, claims // CLAIMS_A_UNIT)
    open_now = (now - timedelta(minutes=1), now + timedelta(days=1))
    later = (now + timedelta(days=1), now + timedelta(days=2))
    amount_off = {"type": "amount_off", "amount": 2_000, "threshold": 10_000}
    percent_off = {"type": "percent_off", "percent_off": 1_000, "max_discount": 5_000}
    cash = {"type": "cash", "amount": 500}
    return [
        DemoTemplate(_body(f"{run}-hot", open_now, hot_stock, 1, **amount_off), 60, hot_stock, paused=True),
        DemoTemplate(_body(f"{run}-daily", open_now, 50_000, 5, per_user_daily_limit=1, **percent_off), 14, None),
        DemoTemplate(_body(f"{run}-unlimited", open_now, 50_000, None, **cash), 12, None),
        DemoTemplate(_body(f"{run}-small", open_now, 40, 2, **amount_off), 9, 40),
        DemoTemplate(_body(f"{run}-later", later, 1_000, 1, **amount_off), 5, 0),
    ]


def demo_plan(templates: list[DemoTemplate], template_ids: list[str], *, claims: int, seed: int) -> ClaimPlan:
    """The claims: a fifth are retries or repeats, a hundredth breaks the contract."""
    shares = [
        TemplateShare(template_id, template.weight)
        for template_id, template in zip(template_ids, templates, strict=True)
    ]
    return ClaimPlan(
        seed=seed, claims=claims, users=USERS, templates=shares, repeat_share=0.1, retry_share=0.1, wrong_share=0.01
    )


def late_claims(template_id: str, units: int) -> list[ClaimCall]:
    """Claims of users who come when all is settled, one for each unit that is left."""
    return [ClaimCall(template_id, f"late{number}", f"late-{number}") for number in range(units)]


def _body(
    template_no: str, window: tuple[datetime, datetime], stock: int, limit: int | None, **terms: Any
) -> dict[str, Any]:
    start, end = window
    return {
        "template_no": template_no,
        "name": f"Demo {template_no.rpartition('-')[2]}",
        "currency": "CNY",
        "total_quantity": stock,
        "per_user_limit": limit,
        "claim_start": rfc3339(start),
        "claim_end": rfc3339(end),
        "validity": {"mode": "relative", "days": 7},
        **terms,
    }
