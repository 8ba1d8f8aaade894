"""Policies as they are told: those in force, and every version there was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import text

from coupon_workers.errors import NotFound
from coupon_workers.risk.policy import RiskPolicyBody
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.templates.field_type import Instant


class RiskPolicyAnswer(BaseModel):
    """A version of a policy."""

    model_config = ConfigDict(frozen=True)

    name: str
    version: int
    policy: RiskPolicyBody | None = Field(description="null: this version took the policy away")
    changed_by: str | None = Field(description="the key's id")
    changed_at: Instant


_ONE = text("SELECT * FROM risk_policy WHERE name = :name")
_PAGE = text("SELECT * FROM risk_policy WHERE name > :after ORDER BY name LIMIT :limit")
_VERSIONS = text("""
    SELECT * FROM risk_policy_version WHERE name = :name AND version < :before ORDER BY version DESC LIMIT :limit
""")


def policy_answer(row: Mapping[Any, Any]) -> RiskPolicyAnswer:
    """The answer for a row."""
    return RiskPolicyAnswer.model_validate(dict(row) | {"policy": row["policy"]})


def read_policy(services: Services, name: str) -> RiskPolicyAnswer:
    """The policy in force. Raises ``NotFound`` ``POLICY_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        row = connection.execute(_ONE, {"name": name}).mappings().first()
    if row is None:
        raise NotFound("POLICY_NOT_FOUND", f"there is no risk policy {name}")
    return policy_answer(row)


def read_policies(services: Services, *, limit: int, after: str = "") -> list[RiskPolicyAnswer]:
    """Up to ``limit`` policies in force behind ``after``, by name. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        return [policy_answer(row) for row in connection.execute(_PAGE, {"after": after, "limit": limit}).mappings()]


def read_versions(services: Services, name: str, *, limit: int, before: int | None = None) -> list[RiskPolicyAnswer]:
    """Up to ``limit`` versions of a policy, newest first. Raises ``StoreUnavailable``."""
    bounds = {"name": name, "before": 2**62 if before is None else before, "limit": limit}
    with transaction(services.engine) as connection:
        return [policy_answer(row) for row in connection.execute(_VERSIONS, bounds).mappings()]
