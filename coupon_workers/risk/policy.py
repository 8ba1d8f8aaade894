"""A policy as it is asked for, and in the words of the claim script (``lua/part/weigh_risk.lua``)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

Dimension = Literal["device", "ip", "address", "user"]
Measure = Literal["claims", "distinct_users", "face_value_minor", "score"]
RiskVerdict = Literal["allow", "review", "reject"]

BLOCK_LIST, ALLOW_LIST, MISSING_SCORE = "block_list", "allow_list", "missing_score"
RESERVED = frozenset({BLOCK_LIST, ALLOW_LIST, MISSING_SCORE})
"""What a verdict's rule is called when it is none of the policy's own."""

MOST_RULES = 20
"""Each costs every claim of its templates a few microseconds of Redis."""

MOST_DISTINCT = 10_000
"""Users that a counter of users remembers of one subject: it keeps each of them."""

MOST_SCORE = 1_000
DEFAULT_REVIEW_S = 86_400
LONGEST_WINDOW_S = 30 * 86_400
MOST_MINOR = 10**15
"""Sums and their share of a window stay exact in the numbers of Lua."""

PolicyName = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9._-]{1,64}$")]
RuleName = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_-]{0,31}$")]

EXAMPLE: JsonDict = {
    "rules": [
        {"name": "device_burst", "dimension": "device", "measure": "claims", "window_s": 60, "threshold": 5},
        {
            "name": "shared_device",
            "dimension": "device",
            "measure": "distinct_users",
            "window_s": 86400,
            "threshold": 3,
            "verdict": "review",
        },
    ],
    "review_s": 7200,
}


class RiskRule(BaseModel):
    """Fires when, with the claim at hand, the measure of its subject within the window is above the threshold."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: RuleName = Field(description="unique in the policy; a refused claim is told it")
    dimension: Dimension = Field(description="what is counted by; of a claim that does not name it nothing is asked")
    measure: Measure = Field(
        description="claims; distinct_users; face_value_minor: minor units of their coupons; score: of the user"
    )
    window_s: Annotated[int, Field(ge=1, le=LONGEST_WINDOW_S)] | None = Field(
        None, description="seconds looked back; none for score"
    )
    threshold: Annotated[int, Field(ge=0, le=MOST_MINOR)] = Field(description="the most that does not fire")
    verdict: RiskVerdict = Field("reject", description="allow: noted, and no more")
    shadow: bool = Field(False, description="only recorded")

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.name in RESERVED:
            raise PydanticCustomError("rule_name", "This name is kept for lists and scores")
        if (self.measure == "score") != (self.window_s is None):
            raise PydanticCustomError("rule_window", "A rule has a window_s, and one of score has none")
        if self.dimension == "user" and self.measure == "distinct_users":
            raise PydanticCustomError("rule_measure", "A user is one user: distinct_users is for the other dimensions")
        if self.measure == "score" and (self.dimension != "user" or self.threshold > MOST_SCORE):
            raise PydanticCustomError("rule_measure", f"A score is a user's, with a threshold up to {MOST_SCORE}")
        if self.measure == "distinct_users" and self.threshold > MOST_DISTINCT:
            raise PydanticCustomError("rule_threshold", f"Of distinct_users the threshold is up to {MOST_DISTINCT}")
        return self


class RiskPolicyBody(BaseModel):
    """A policy's rules, in order: of two that fire with the same verdict the first is named."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, json_schema_extra={"title": "RiskPolicyBody", "example": EXAMPLE}
    )

    description: Annotated[str, Field(max_length=500)] | None = None
    rules: Annotated[list[RiskRule], Field(max_length=MOST_RULES)]
    missing_score: RiskVerdict = Field(
        "allow", description="of a user without a score, where a rule asks for it; reject fails closed"
    )
    count_refused: bool = Field(
        True, description="a refused claim counts for the rule of claims that refused it: who hammers stays out"
    )
    review_s: Annotated[int, Field(ge=60, le=7 * 86_400)] = Field(
        DEFAULT_REVIEW_S, description="how long a claim is held before it is rejected by itself"
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if len({rule.name for rule in self.rules}) < len(self.rules):
            raise PydanticCustomError("rule_name", "Two rules have the same name")
        return self

    @property
    def asks_for_scores(self) -> bool:
        """Whether a rule wants the user's score."""
        return any(rule.measure == "score" for rule in self.rules)


def encoded(policy: RiskPolicyBody, worth_minor: int) -> str:
    """The policy as the gate's ``meta`` has it: a line of what holds for all, and one a rule.

    ``worth_minor`` is what a coupon counts for, where no pool says. The life of a hash of counters is two of the
    longest windows: whatever is in sight lies in it or in the one before.
    """
    life_ms = 2_000 * max((rule.window_s or 0 for rule in policy.rules), default=0) or ""
    lines = [f"{int(policy.count_refused)} {policy.missing_score} {worth_minor} {life_ms}".rstrip()]
    lines += [
        f"{rule.name} {rule.dimension} {rule.measure} {(rule.window_s or 0) * 1000} {rule.threshold}"
        f" {rule.verdict} {int(rule.shadow)}"
        for rule in policy.rules
    ]
    return "".join(f"{line}\n" for line in lines)
