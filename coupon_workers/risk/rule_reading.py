"""The rules in force of templates: what a rule that fired of a claim says."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import text

from coupon_workers.risk.policy import RiskPolicyBody, RiskRule
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_POLICIES = text("""
    SELECT t.template_id, p.policy FROM coupon_template t JOIN risk_policy p ON p.name = t.risk_policy
     WHERE t.template_id = ANY (:template_ids)
""")


def read_rules(services: Services, template_ids: Iterable[int]) -> dict[tuple[str, str], RiskRule]:
    """By template, as answers name it, and the rule's name. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        rows = connection.execute(_POLICIES, {"template_ids": sorted(set(template_ids))}).all()
    return {
        (str(row.template_id), rule.name): rule
        for row in rows
        for rule in RiskPolicyBody.model_validate(row.policy).rules
    }
