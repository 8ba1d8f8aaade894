"""The rules between the fields of a template. Each is a function of the values it needs, by their dotted names.

A rule is asked only when every value it names is there and well formed, so that it never repeats a field's own error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from coupon_workers.templates.validity import end_of_day

MAX_CLAIM_WINDOW = timedelta(days=3_653)
"""Ten years, leap days counted: longer is a slip of the finger, and the gate lists the zone's offsets over it."""

Broken = Iterator[tuple[str, str]]
"""Fields, by their dotted names, with what is wrong with them."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``check(*values of needs)`` yields what is wrong."""

    needs: tuple[str, ...]
    check: Callable[..., Broken]


RULES: list[Rule] = []


def template_rule(*needs: str) -> Callable[[Callable[..., Broken]], Callable[..., Broken]]:
    """Have ``broken_rules`` ask the decorated check."""

    def register(check: Callable[..., Broken]) -> Callable[..., Broken]:
        RULES.append(Rule(needs, check))
        return check

    return register


_VALUE_OF_TYPE = {"amount_off": "amount", "cash": "amount", "percent_off": "percent_off", "random_amount": "pool"}


def _value_rule(field: str) -> None:
    @template_rule("type", field)
    def value_of_type(kind: str, value: object) -> Broken:
        if _VALUE_OF_TYPE[kind] == field and value is None:
            yield field, f"A template of type {kind} needs it"
        if _VALUE_OF_TYPE[kind] != field and value is not None:
            yield field, f"A template of type {kind} has none"


for _field in ("amount", "percent_off", "pool"):
    _value_rule(_field)


@template_rule("type", "max_discount")
def _cap_of_percent(kind: str, max_discount: int | None) -> Broken:
    if max_discount is not None and kind != "percent_off":
        yield "max_discount", f"A template of type {kind} has none"


@template_rule("type", "threshold")
def _cash_has_no_threshold(kind: str, threshold: int) -> Broken:
    if kind == "cash" and threshold != 0:
        yield "threshold", "A template of type cash has none: leave it out or give 0"


@template_rule("per_user_limit", "per_user_daily_limit")
def _day_within_all(limit: int | None, daily_limit: int | None) -> Broken:
    if limit is not None and daily_limit is not None and daily_limit > limit:
        yield "per_user_daily_limit", "must not exceed per_user_limit"


@template_rule("claim_start", "claim_end")
def _claim_window(start: datetime, end: datetime) -> Broken:
    if end <= start:
        yield "claim_end", "must come after claim_start"
    elif end - start > MAX_CLAIM_WINDOW:
        yield "claim_end", "must not come later than ten years after claim_start"


def _validity_ends_after(start_field: str, message: str) -> None:
    @template_rule(start_field, "validity.to", "validity.until_end_of_day")
    def as_given(start: datetime, end: datetime, to_end_of_day: bool) -> Broken:
        if not to_end_of_day and end <= start:
            yield "validity.to", message

    @template_rule(start_field, "validity.to", "validity.until_end_of_day", "timezone")
    def prolonged(start: datetime, end: datetime, to_end_of_day: bool, timezone: str) -> Broken:
        if to_end_of_day and end_of_day(end, timezone) <= start:
            yield "validity.to", message


_validity_ends_after("validity.from", "must come after validity.from")
_validity_ends_after("claim_start", "must come after claim_start: no coupon would ever hold")


def broken_rules(known: dict[str, Any]) -> Broken:
    """What is wrong between the values of ``known`` (by dotted names); values that are not known break no rule."""
    for rule in RULES:
        if all(need in known for need in rule.needs):
            yield from rule.check(*(known[need] for need in rule.needs))
