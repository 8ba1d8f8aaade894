"""What is on sale during an experiment: a template that sells out, one with limits a day, and quiet ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.fault_client import HistoryHttp


@dataclass(frozen=True, slots=True)
class Offer:
    """A template: its units, its limits, and its weight among all claims; with a budget, its amounts are random."""

    total: int
    weight: int
    per_user: int | None = None
    per_day: int | None = None
    budget: int | None = None

    @property
    def value(self) -> dict[str, Any]:
        """The fields that say what a coupon is worth; of random amounts many are alike."""
        if self.budget is None:
            return {"type": "cash", "amount": 500}
        most = 2 * self.budget // self.total
        return {"type": "random_amount", "pool": {"min": 1, "max": most, "budget": self.budget}}


OFFERS = (
    Offer(total=300, weight=40, per_user=1, budget=12_000),
    Offer(total=60, weight=10, per_user=2),
    Offer(total=50_000, weight=25, per_user=5, per_day=3),
    Offer(total=50_000, weight=25),
)
"""The last one never refuses: by it a system is seen to work again."""


def open_offers(desk: HistoryHttp, offers: Sequence[Offer], name: str) -> list[int]:
    """Make and publish them over HTTP; their ids. ``name`` keeps one experiment's apart from another's."""
    return [_open(desk, offer, f"{name}-{number}") for number, offer in enumerate(offers)]


def _open(desk: HistoryHttp, offer: Offer, number: str) -> int:
    now = datetime.now(UTC)
    body: dict[str, Any] = {
        "template_no": number,
        "name": f"Fault {number}",
        **offer.value,
        "currency": "CNY",
        "total_quantity": offer.total,
        "per_user_limit": offer.per_user,
        "per_user_daily_limit": offer.per_day,
        "claim_start": (now - timedelta(minutes=1)).isoformat(),
        "claim_end": (now + timedelta(days=1)).isoformat(),
        "validity": {"mode": "relative", "days": 7},
        "timezone": "Asia/Shanghai",
    }
    made = desk.ask("admin", "POST", "/v1/templates", body, key=f"make-{number}")
    assert made.status == 201, made
    template_id = made.body["template_id"]
    target = f"/v1/templates/{template_id}/publish"
    published = desk.ask("admin", "POST", target, key=f"publish-{number}")
    assert published.status == 200, published
    return int(template_id)
