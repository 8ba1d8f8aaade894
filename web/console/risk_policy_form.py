"""The form of a risk policy: rules in numbered rows, read into the body that the API takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import request

from coupon_workers.risk.policy import DEFAULT_REVIEW_S, MOST_RULES, RiskPolicyBody
from web.console import field_reading as read
from web.console.form import Form
from web.console.language import N_

ROW = {
    "rule": "",
    "dimension": "device",
    "measure": "claims",
    "window": "",
    "unit": "60",
    "threshold": "",
    "verdict": "reject",
    "shadow": "",
}
"""A row before anything is typed; ``rule_0`` is the name of the first rule."""

TYPED = ("rule", "window", "threshold")
"""A row in which nothing of these stands is none."""

SPARE_ROWS = 2

UNITS = {"1": N_("seconds"), "60": N_("minutes"), "3600": N_("hours"), "86400": N_("days")}


def new_form() -> Form:
    """A first rule, as most begin; what it would refuse is only recorded."""
    return _form(
        {"count_refused": "on", "missing_score": "allow", "name": ""}
        | _time("review", DEFAULT_REVIEW_S)
        | _row(0, ROW | {"window": "1", "threshold": "5", "shadow": "on"})
    )


def form_of(policy: RiskPolicyBody) -> Form:
    """The form as it would have been filled in for ``policy``."""
    values = {
        "description": policy.description or "",
        "missing_score": policy.missing_score,
        "count_refused": "on" if policy.count_refused else "",
        **_time("review", policy.review_s),
    }
    for place, rule in enumerate(policy.rules):
        row = {
            "rule": rule.name,
            "dimension": rule.dimension,
            "measure": rule.measure,
            "threshold": str(rule.threshold),
            "verdict": rule.verdict,
            "shadow": "on" if rule.shadow else "",
        }
        values |= _row(place, ROW | row | _time("window", rule.window_s, "unit"))
    return _form(values)


def sent_policy_form() -> Form:
    """The form of this request, with room for more rules."""
    return _form({name: value.strip() for name, value in request.form.items()})


def rows_of(form: Form) -> range:
    """The rows that there are."""
    return range(sum(f"rule_{place}" in form.names for place in range(MOST_RULES)))


def body_of(form: Form) -> dict[str, Any]:
    """The body; what cannot be read is told to the form."""
    return {
        "description": form["description"] or None,
        "rules": [_rule(form, place) for place in _used(form.values)],
        "missing_score": form["missing_score"] or "allow",
        "count_refused": bool(form["count_refused"]),
        "review_s": _seconds(form, "review", form["review_unit"]),
    }


def _rule(form: Form, place: int) -> dict[str, Any]:
    score = form[f"measure_{place}"] == "score"
    dimension = "user" if score else form[f"dimension_{place}"]
    return {
        "name": form[f"rule_{place}"] or f"{dimension}_{form[f'measure_{place}']}",
        "dimension": dimension,
        "measure": form[f"measure_{place}"],
        "window_s": None if score else _seconds(form, f"window_{place}", form[f"unit_{place}"]),
        "threshold": _number(form, f"threshold_{place}"),
        "verdict": form[f"verdict_{place}"],
        "shadow": bool(form[f"shadow_{place}"]),
    }


def _seconds(form: Form, name: str, unit: str) -> int | None:
    count = _number(form, name)
    return None if count is None else count * int(unit if unit in UNITS else 1)


def _number(form: Form, name: str) -> int | None:
    try:
        return read.number(form[name])
    except read.FieldError as error:
        form.add_errors([(name, str(error))])
        return None


def _form(values: Mapping[str, str]) -> Form:
    """With spare rows, and the body's errors told at the fields of the rows."""
    used = _used(values)
    rows = min(max(used, default=-1) + 1 + SPARE_ROWS, MOST_RULES)
    filled = {name: text for place in range(rows) for name, text in _row(place, ROW).items()}
    aliases = {"review_s": "review", "": "rule_0"}
    for number, place in enumerate(used):
        aliases |= {
            f"rules.{number}": f"rule_{place}",
            f"rules.{number}.name": f"rule_{place}",
            f"rules.{number}.window_s": f"window_{place}",
            f"rules.{number}.threshold": f"threshold_{place}",
        }
    return Form({**filled, **values}, aliases)


def _used(values: Mapping[str, str]) -> list[int]:
    return [place for place in range(MOST_RULES) if any(values.get(f"{part}_{place}") for part in TYPED)]


def _row(place: int, row: Mapping[str, str]) -> dict[str, str]:
    return {f"{part}_{place}": text for part, text in row.items()}


def _time(name: str, seconds: int | None, unit_name: str = "") -> dict[str, str]:
    """In the largest unit in which it is a whole number."""
    unit = next((unit for unit in reversed(UNITS) if seconds and seconds % int(unit) == 0), "60")
    return {name: str(seconds // int(unit)) if seconds else "", unit_name or f"{name}_unit": unit}
