"""What a finding compares and what its repair did, as people read it: money, times and words, side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from web.console.fact_word import FACT_WORDS, VALUE_WORDS
from web.console.language import gettext
from web.console.show import money, number, plain, time, yes_no
from web.console.word import REASONS, word

HERE, THERE = "here", "there"

AMOUNTS = frozenset(
    {"payable", "paid", "discount", "adjusted", "refunded", "refund_amount", "discount_reversed", "amount"}
)
"""What is money beside what ends in ``_minor``."""

NUMBERS = frozenset({"order_no", "coupon_no", "coupon_ids", "payment_no", "refund_no", "reference", "entries"})
"""What is told as it is: somebody may have named an order like a status."""

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


class Fact(NamedTuple):
    """A fact and what is said of it."""

    label: str
    value: str


class Compared(NamedTuple):
    """A fact with what it is on either side."""

    label: str
    here: str
    there: str


def sides_of(evidence: Mapping[str, Any], currency: str | None) -> list[Compared]:
    """Every fact of both sides; of a side that is not there dashes. Empty for evidence without sides. A side that names
    its currency has its money in that one."""
    here, there = (evidence.get(side) or {} for side in (HERE, THERE))
    if not (isinstance(here, dict) and isinstance(there, dict)):
        return []
    return [
        Compared(
            _label(name), *(_value(name, side.get(name), side.get("currency") or currency) for side in (here, there))
        )
        for name in dict.fromkeys([*here, *there])
    ]


def facts_of(facts: Mapping[str, Any], currency: str | None) -> list[Fact]:
    """The facts that are told without sides. A refusal that has its words needs not the core's."""
    shown = {HERE, THERE} if sides_of(facts, currency) else set()
    shown |= {"detail"} if facts.get("refused") in REASONS else set()
    return [Fact(_label(name), _value(name, value, currency)) for name, value in facts.items() if name not in shown]


def _label(name: str) -> str:
    return gettext(FACT_WORDS[name]) if name in FACT_WORDS else word(name)


def _value(name: str, value: Any, currency: str | None) -> str:
    if isinstance(value, bool):
        return yes_no(value)
    if isinstance(value, int):
        if name not in AMOUNTS and not name.endswith("_minor"):
            return number(value)
        return money(value, currency) if currency else gettext("%s in minor units") % number(value)
    if isinstance(value, str):
        return value if name in NUMBERS else _text(value)
    if isinstance(value, dict):
        parts = [Markup("{} {}").format(_label(part), _value(part, each, currency)) for part, each in value.items()]
        return Markup(" · ").join(parts) or "—"
    if isinstance(value, list):
        return Markup(gettext("; ")).join(_value(name, each, currency) for each in value) or "—"
    return plain(value)


def _text(value: str) -> str:
    if _INSTANT.fullmatch(value):
        return time(value)
    if value in VALUE_WORDS:
        return gettext(VALUE_WORDS[value])
    return gettext(REASONS[value]) if value in REASONS else word(value)
