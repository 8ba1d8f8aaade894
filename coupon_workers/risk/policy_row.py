"""Policies as rows: the one a template names, and what a coupon of the template counts for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.risk.policy import RiskPolicyBody
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

_POLICY = text("SELECT policy FROM risk_policy WHERE name = :name")
_HOLD = text("SELECT policy FROM risk_policy WHERE name = :name FOR KEY SHARE")


def find_policy(connection: Connection, name: str) -> RiskPolicyBody | None:
    """The policy in force. One that templates name is not taken away: without it there would be no rules."""
    policy = connection.scalar(_POLICY, {"name": name})
    if policy is None:
        log.error("a template names a risk policy that is not there", policy=name)
        return None
    return RiskPolicyBody.model_validate(policy)


def hold_policy(connection: Connection, name: str) -> bool:
    """Whether there is one of this name; it stays until the transaction ends."""
    return connection.scalar(_HOLD, {"name": name}) is not None


def worth_of(template: Mapping[str, Any]) -> int:
    """Minor units that a claim counts for where no pool says: the amount, or the most that a percentage takes off."""
    return int(template["amount_minor"] or template["max_discount_minor"] or 0)
