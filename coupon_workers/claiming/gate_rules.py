"""What the gate must know of a template, in the words of the claim script's ``meta`` hash."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from coupon_workers.risk.policy import RiskPolicyBody, encoded
from coupon_workers.risk.policy_row import find_policy, worth_of
from coupon_workers.runtime.clock import to_ms
from coupon_workers.schema import CouponTemplate
from coupon_workers.templates.local_day import utc_offsets

_GATE_STATUS = {
    "scheduled": "open",
    "active": "open",
    "ended": "open",  # the window says so, by Redis's clock
    "paused": "paused",
    "offline": "offline",
    "archived": "offline",
}


@dataclass(frozen=True, slots=True)
class GateRules:
    """A template as the gate sees it, at one version. ``total`` is what claims may take: with what revoked coupons gave
    back, without what is set aside for others and what was ``granted`` out of that."""

    template_id: int
    version: int
    total: int
    granted: int
    status: str
    claim_start: datetime
    claim_end: datetime
    per_user_limit: int | None
    per_user_daily_limit: int | None
    timezone: str
    channels: tuple[str, ...]
    pause_epoch: int
    bucket_count: int
    has_pool: bool = False
    risk: str = ""
    risk_policy: RiskPolicyBody | None = None

    def share_of(self, bucket: int) -> int:
        """The units of one bucket; the shares of all buckets sum to the total."""
        share, rest = divmod(self.total, self.bucket_count)
        return share + (1 if bucket < rest else 0)

    def meta(self) -> list[str | int]:
        """Pairs of field and value for the ``meta`` hash, flat; "" stands for no limit."""
        offsets = utc_offsets(self.timezone, self.claim_start, self.claim_end)
        fields: dict[str, str | int] = {
            "status": _GATE_STATUS[self.status],
            "start_ms": to_ms(self.claim_start),
            "end_ms": to_ms(self.claim_end),
            "user_limit": _limit(self.per_user_limit),
            "daily_limit": _limit(self.per_user_daily_limit),
            "offsets": ",".join(f"{from_s}:{offset_s}" for from_s, offset_s in offsets),
            "channels": f",{','.join(self.channels)}," if self.channels else "",
            "epoch": self.pause_epoch,
            "pool": "1" if self.has_pool else "",
            "risk": self.risk,
        }
        return [part for pair in fields.items() for part in pair]


def _limit(limit: int | None) -> str | int:
    return "" if limit is None else limit


def read_gate_rules(connection: Connection, template_id: int) -> GateRules | None:
    """The rules of a published template; None when there is no such template or it was never published."""
    table = CouponTemplate.__table__
    row = connection.execute(select(table).where(table.c.template_id == template_id)).mappings().first()
    if row is None or row["status"] not in _GATE_STATUS:
        return None
    policy = find_policy(connection, row["risk_policy"]) if row["risk_policy"] else None
    return gate_rules_of(dict(row), policy)


def gate_rules_of(row: dict[str, Any], policy: RiskPolicyBody | None = None) -> GateRules:
    """The rules in a row of ``coupon_template``, with its risk policy."""
    return GateRules(
        template_id=row["template_id"],
        version=row["version"],
        total=_claimable(row),
        granted=row["granted_quantity"],
        status=row["status"],
        claim_start=row["claim_start"],
        claim_end=row["claim_end"],
        per_user_limit=row["per_user_limit"],
        per_user_daily_limit=row["per_user_daily_limit"],
        timezone=row["timezone"],
        channels=tuple(row["channels_claim"]),
        pause_epoch=row["pause_epoch"],
        bucket_count=row["bucket_count"],
        has_pool=row["type"] == "random_amount",
        risk=encoded(policy, worth_of(row)) if policy else "",
        risk_policy=policy,
    )


def _claimable(row: dict[str, Any]) -> int:
    """What is held for review was taken by claims."""
    aside = row["reserved_quantity"] - row["held_quantity"] + row["granted_quantity"]
    return int(row["total_quantity"] + row["restocked_quantity"] - aside)
