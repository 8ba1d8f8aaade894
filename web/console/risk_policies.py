"""Risk policies: those in force, one with what its rules have done, rules tried or in earnest, taking one away."""

from __future__ import annotations

from typing import Any

from flask import request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.errors import NotFound
from coupon_workers.risk import policy_desk
from coupon_workers.risk.policy import RiskPolicyBody
from coupon_workers.risk.policy_effect import PolicyEffect, read_effect
from coupon_workers.risk.policy_reading import read_policies, read_policy, read_versions
from coupon_workers.templates.template_name import read_names
from web.console.blueprint import console
from web.console.field_reading import FieldError, number
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing, cursor_of
from web.console.notice import done
from web.console.rendering import render
from web.console.risk_word import rule_sentence
from web.context import principal, services

VERSIONS_SHOWN = 10


@console.get("/risk-policies")
@shown_to(Scope.ADMIN)
def risk_policies() -> Any:
    """By name."""
    position = cursor_of(str)
    found = read_policies(services(), limit=PAGE_SIZE + 1, after=position[0] if position else "")
    return render("risk_policies.html", listing=Listing(found, lambda policy: [policy.name]))


@console.get("/risk-policies/<name>")
@shown_to(Scope.ADMIN)
def risk_policy(name: str) -> Any:
    """Its rules, how often each fired, the templates that name it, its versions."""
    found = read_policy(services(), name)
    assert found.policy is not None  # what is in force was not taken away
    effect = read_effect(services(), name)
    return render(
        "risk_policy.html",
        policy=found,
        rules=[(rule, rule_sentence(rule), _fired(effect, rule.name)) for rule in found.policy.rules],
        others=[each for each in effect.rules if each.rule not in {rule.name for rule in found.policy.rules}],
        effect=effect,
        names=read_names(services(), effect.template_ids),
        versions=read_versions(services(), name, limit=VERSIONS_SHOWN),
    )


@console.post("/risk-policies/<name>/shadow")
@shown_to(Scope.ADMIN)
def shadow_rule(name: str) -> Any:
    """Have a rule only tried, or in earnest: the next version of what was looked at."""
    found, wanted = read_policy(services(), name), request.form.get("rule", "")
    assert found.policy is not None
    if wanted not in {rule.name for rule in found.policy.rules}:
        raise NotFound("POLICY_CHANGED", f"there is no rule {wanted}")
    shadow = request.form.get("shadow") == "on"
    rules = [rule.model_copy(update={"shadow": shadow}) if rule.name == wanted else rule for rule in found.policy.rules]
    body = RiskPolicyBody.model_validate(found.policy.model_copy(update={"rules": rules}))
    policy_desk.put_policy(services(), name, body, principal().key_id, if_version=sent_version())
    return done(url_for("console.risk_policy", name=name), "rule_tried" if shadow else "rule_in_earnest")


@console.post("/risk-policies/<name>/delete")
@shown_to(Scope.ADMIN)
def end_risk_policy(name: str) -> Any:
    """Take it away; its versions stay."""
    policy_desk.delete_policy(services(), name, principal().key_id)
    return done(url_for("console.risk_policies"), "policy_gone")


def sent_version() -> int:
    """The version that the person at this form has looked at; 0: none."""
    try:
        return number(request.form.get("version", "")) or 0
    except FieldError:
        return 0


def _fired(effect: PolicyEffect, rule: str) -> dict[bool, tuple[int, int]]:
    """Claims and users of which the rule fired, in earnest (False) and when it was only tried (True)."""
    return {
        shadow: (
            sum(each.claims for each in effect.rules if (each.rule, each.shadow) == (rule, shadow)),
            sum(each.users for each in effect.rules if (each.rule, each.shadow) == (rule, shadow)),
        )
        for shadow in (False, True)
    }
