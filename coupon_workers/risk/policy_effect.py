"""What a policy has done so far, or would have done where its rules are only tried: the log of verdicts, counted."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import text

from coupon_workers.risk.policy import RiskVerdict
from coupon_workers.risk.policy_reading import read_policy
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.templates.field_type import Instant

MOST_TEMPLATES = 20
MOST_VERDICTS = 10_000
"""Newest verdicts that are counted of each template: a sale that is attacked has millions."""

_TEMPLATES = text("""
    SELECT template_id FROM coupon_template WHERE risk_policy = :name ORDER BY template_id DESC LIMIT :templates
""")
_COUNTED = text("""
    WITH counted AS MATERIALIZED (
        SELECT v.* FROM unnest(CAST(:template_ids AS bigint[])) AS named(template_id) CROSS JOIN LATERAL (
            SELECT template_id, rule, verdict, shadow, user_id, at FROM risk_verdict
             WHERE risk_verdict.template_id = named.template_id ORDER BY verdict_id DESC LIMIT :verdicts
        ) AS v
    )
    SELECT rule, verdict, shadow, count(*) AS claims, count(DISTINCT user_id) AS users,
           (SELECT max(first) FROM (SELECT min(at) AS first FROM counted GROUP BY template_id
                                    HAVING count(*) >= :verdicts) AS cut) AS since
      FROM counted GROUP BY rule, verdict, shadow ORDER BY rule, verdict, shadow
""")


class RuleEffect(BaseModel):
    """How often a rule fired with a verdict."""

    model_config = ConfigDict(frozen=True)

    rule: str = Field(description="of the policy, now or earlier; or block_list, allow_list, missing_score")
    verdict: RiskVerdict
    shadow: bool = Field(description="only recorded: what it would have done")
    claims: int
    users: int = Field(description="different ones among them")


class PolicyEffect(BaseModel):
    """What a policy's rules said of claims."""

    model_config = ConfigDict(frozen=True)

    name: str
    template_ids: list[str] = Field(description="the newest twenty templates that name it: these are counted")
    since: Instant | None = Field(description="what is older was too much to count; null: all that is kept is counted")
    rules: list[RuleEffect]


def read_effect(services: Services, name: str) -> PolicyEffect:
    """Counted over the newest verdicts of the templates that name it. Raises ``NotFound`` ``POLICY_NOT_FOUND``,
    ``StoreUnavailable``."""
    read_policy(services, name)
    with transaction(services.engine) as connection:
        named = connection.scalars(_TEMPLATES, {"name": name, "templates": MOST_TEMPLATES}).all()
        bounds = {"template_ids": list(named), "verdicts": MOST_VERDICTS}
        rows = connection.execute(_COUNTED, bounds).mappings().all()
    return PolicyEffect(
        name=name,
        template_ids=[str(template_id) for template_id in named],
        since=rows[0]["since"] if rows else None,
        rules=[RuleEffect.model_validate(dict(row)) for row in rows],
    )
