"""Words of risk control: what is counted, what is said of a claim, and a rule as a sentence."""

from __future__ import annotations

from coupon_workers.risk.policy import RiskRule
from web.console.language import N_, gettext
from web.console.show import number, span

RISK_WORDS = {
    "device": N_("device"),
    "ip": N_("network address"),
    "address": N_("postal address"),
    "user": N_("user"),
    "claims": N_("claims"),
    "distinct_users": N_("different users"),
    "face_value_minor": N_("face value, in minor units"),
    "score": N_("score of the user"),
    "allow": N_("let through"),
    "review": N_("hold for review"),
    "reject": N_("refuse"),
    "held": N_("waits for a person"),
    "block_list": N_("block list"),
    "allow_list": N_("allow list"),
    "missing_score": N_("no score is known"),
    "RISK_REJECTED": N_("refused as risky"),
}

RISK_TONES = {"good": ("allow",), "wait": ("held",), "warn": ("review",), "bad": ("reject",)}

RISK_REASONS = {
    "POLICY_NOT_FOUND": N_("There is no such policy. Perhaps somebody took it away."),
    "POLICY_IN_USE": N_("Templates name this policy: it stays as long as they do."),
    "POLICY_CHANGED": N_("Somebody changed it meanwhile. Look at the version in force, then change that."),
    "ENTRY_NOT_FOUND": N_("It is on this list no longer."),
    "REVIEW_NOT_FOUND": N_("No such claim was held."),
    "ALREADY_DECIDED": N_("It was decided already, by somebody else or by its deadline."),
    "BUSY": N_("Its template is being loaded or given away at this moment. Try again."),
}

_SENTENCES = {
    "claims": N_("more claims of one %(subject)s than %(most)s in %(window)s"),
    "distinct_users": N_("more users of one %(subject)s than %(most)s in %(window)s"),
    "face_value_minor": N_("more than %(most)s minor units for one %(subject)s in %(window)s"),
    "score": N_("a score above %(most)s"),
}


def rule_sentence(rule: RiskRule) -> str:
    """When the rule fires, for people."""
    window = span(rule.window_s * 1000) if rule.window_s else ""
    places = {
        "most": number(rule.threshold),
        "subject": gettext(RISK_WORDS[rule.dimension]),
        "window": window,
    }
    return gettext(_SENTENCES[rule.measure]) % places
