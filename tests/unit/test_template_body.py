"""The body of a template: its types and bounds, its rules, and every error named at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.whole_body import errors_of

GOOD: dict[str, Any] = {
    "name": "Double Eleven 100-20",
    "type": "amount_off",
    "currency": "CNY",
    "amount": 2000,
    "threshold": 10_000,
    "total_quantity": 1000,
    "claim_start": "2026-11-11T00:00:00+08:00",
    "claim_end": "2026-11-12T00:00:00+08:00",
    "validity": {"mode": "relative", "days": 7},
}
PERCENT = GOOD | {"type": "percent_off", "amount": None, "percent_off": 1500}
POOL = {"min": 100, "max": 8800, "budget": 500_000, "distribution": "uniform"}
TIERS = [{"min": 100, "max": 500, "weight": 90}, {"min": 501, "max": 8800, "weight": 10}]
RANDOM = GOOD | {"type": "random_amount", "amount": None, "pool": POOL}
FIXED = {"mode": "fixed", "from": "2026-11-11T00:00:00+08:00", "to": "2026-12-01T00:00:00+08:00"}


def fields_in_error(body: Any) -> list[str]:
    """The fields that a body is refused for, each once, sorted; none for a good one."""
    try:
        TemplateBody.model_validate(body)
    except ValidationError as error:
        return sorted({field for field, _ in errors_of(error)})
    return []


def test_what_is_left_out_has_the_defaults_of_the_contract() -> None:
    """One coupon a user, no threshold but the given, everything in scope, every channel."""
    body = {name: value for name, value in GOOD.items() if name != "threshold"}

    template = TemplateBody.model_validate(body).model_dump(mode="json", by_alias=True)

    every: dict[str, list[str]] = {"include": [], "exclude": []}
    expected: dict[str, Any] = {
        "template_no": None,
        "percent_off": None,
        "max_discount": None,
        "pool": None,
        "threshold": 0,
        "per_user_limit": 1,
        "per_user_daily_limit": None,
        "timezone": "Asia/Shanghai",
        "scope": {"products": every, "categories": every, "channels": [], "user_tags": []},
        "stacking": {"exclusive": False, "group": None, "priority": 100},
        "refund": {"return": "full_only", "threshold": "keep", "expired": "expire", "grace_days": 0},
        "transferable": False,
        "restock_on_revoke": False,
        "notify": True,
        "channels_claim": [],
        "risk_policy": None,
        "approval_required": None,
    }
    assert expected == {name: template[name] for name in expected}


def test_instants_are_kept_in_utc_and_in_whole_milliseconds() -> None:
    """The gate works in milliseconds: what is finer is cut off."""
    template = TemplateBody.model_validate(GOOD | {"claim_start": "2026-11-11T00:00:00.123999999+08:00"})

    assert datetime(2026, 11, 10, 16, 0, 0, 123_000, tzinfo=UTC) == template.claim_start


def test_integers_are_accepted_as_ids_and_kept_as_text() -> None:
    """Products and tags are named elsewhere, with numbers too."""
    scope = {"products": {"include": [9, "p9"], "exclude": []}, "user_tags": [2**53 - 1]}

    template = TemplateBody.model_validate(GOOD | {"scope": scope})

    assert ["9", "p9"] == template.scope.products.include
    assert ["9007199254740991"] == template.scope.user_tags


@pytest.mark.parametrize(
    "body",
    [
        GOOD,
        PERCENT | {"max_discount": 5000},
        GOOD | {"type": "cash", "threshold": 0},
        RANDOM,
        RANDOM | {"pool": {"min": 5, "max": 5, "budget": 5000, "distribution": "normal"}},
        RANDOM | {"pool": POOL | {"distribution": "tiered", "tiers": TIERS}},
        RANDOM | {"total_quantity": 1_000_000, "pool": POOL | {"budget": 100_000_000}},
        GOOD | {"validity": FIXED},
        GOOD | {"per_user_limit": None, "per_user_daily_limit": 3},
        GOOD | {"per_user_limit": 3, "per_user_daily_limit": 3},
        GOOD | {"claim_end": "2036-11-11T00:00:00+08:00"},
        GOOD | {"currency": "KWD", "timezone": "America/Argentina/Buenos_Aires"},
        GOOD | {"name": "满100减20 🎉"},
        # The last valid day is that of the start of claiming: it is enough that the day's end comes later.
        GOOD
        | {"validity": FIXED | {"from": "2026-11-01T00:00:00Z", "to": GOOD["claim_start"], "until_end_of_day": True}},
    ],
)
def test_a_good_body_is_taken(body: dict[str, Any]) -> None:
    """Every type, and values at their bounds."""
    assert [] == fields_in_error(body)


BAD_FIELDS: list[tuple[str, Any]] = [
    ("name", ""),
    ("name", " "),
    ("name", "x" * 65),
    ("name", "two\nlines"),
    ("name", "nul\x00"),
    ("name", "half \ud83c"),
    ("name", 7),
    ("template_no", "with space"),
    ("template_no", "ends in a line\n"),
    ("template_no", ""),
    ("template_no", "x" * 65),
    ("type", "amount"),
    ("type", None),
    ("currency", "cny"),
    ("currency", "XAU"),
    ("currency", "CN"),
    ("amount", True),
    ("amount", 2000.0),
    ("amount", "2000"),
    ("amount", 0),
    ("amount", -1),
    ("amount", 2**53),
    ("amount", 10**400),
    ("threshold", -1),
    ("threshold", False),
    ("threshold", None),
    ("total_quantity", 0),
    ("total_quantity", 1_000_000_001),
    ("total_quantity", "1000"),
    ("per_user_limit", 0),
    ("per_user_limit", True),
    ("per_user_daily_limit", 1.5),
    ("claim_start", "2026-11-11T00:00:00"),
    ("claim_start", "2026-11-11"),
    ("claim_start", 1_794_326_400),
    ("claim_start", "1794326400"),
    ("claim_start", "2026-02-30T00:00:00Z"),
    ("claim_start", "2026-11-11T24:00:00Z"),
    ("claim_start", "１２"),
    ("claim_start", "0001-01-01T00:00:00+23:59"),
    ("claim_end", "9999-12-31T23:59:59-23:59"),
    ("claim_end", None),
    ("timezone", "Mars/Olympus"),
    ("timezone", "../../etc/passwd"),
    ("timezone", "Asia"),
    ("timezone", "\x00"),
    ("validity", None),
    ("validity", "7 days"),
    ("validity.mode", {}),
    ("validity.mode", {"mode": "for ever"}),
    ("validity.days", {"mode": "relative"}),
    ("validity.days", {"mode": "relative", "days": 0}),
    ("validity.days", {"mode": "relative", "days": 3651}),
    ("validity.start_after_days", {"mode": "relative", "days": 1, "start_after_days": -1}),
    ("validity.until_end_of_day", {"mode": "relative", "days": 1, "until_end_of_day": 1}),
    ("validity.from", {"mode": "fixed", "to": FIXED["to"]}),
    ("validity.days", FIXED | {"days": 7}),
    ("validity.to", FIXED | {"to": FIXED["from"]}),
    ("scope", None),
    ("scope.products.include", {"products": {"include": ["x"] * 1001, "exclude": []}}),
    ("scope.products.include.1", {"products": {"include": ["x", True], "exclude": []}}),
    ("scope.channels.0", {"channels": ["a,b"]}),
    ("scope.brands", {"brands": []}),
    ("stacking.exclusive", {"exclusive": "yes"}),
    ("stacking.priority", {"priority": -1}),
    ("refund.return", {"return": "always"}),
    ("refund.grace_days", {"grace_days": 3651}),
    ("transferable", 0),
    ("notify", None),
    ("channels_claim", "app"),
    ("channels_claim.0", ["x" * 33]),
    ("risk_policy", ""),
    ("approval_required", "no"),
    ("colour", "red"),
    ("issued_quantity", 0),
    ("x" * 100, 1),
]


@pytest.mark.parametrize(("field", "value"), BAD_FIELDS)
def test_a_bad_field_is_named(field: str, value: Any) -> None:
    """By its dotted path, and it alone."""
    assert [field] == fields_in_error(GOOD | {field.split(".")[0]: value})


BROKEN_RULES: list[tuple[str, dict[str, Any]]] = [
    ("amount", GOOD | {"amount": None}),
    ("percent_off", GOOD | {"percent_off": 1500}),
    ("pool", GOOD | {"pool": POOL | {"budget": 100_000}}),
    ("max_discount", GOOD | {"max_discount": 5000}),
    ("amount", PERCENT | {"amount": 2000}),
    ("percent_off", PERCENT | {"percent_off": None}),
    ("percent_off", PERCENT | {"percent_off": 10_001}),
    ("threshold", GOOD | {"type": "cash"}),
    ("amount", RANDOM | {"amount": 2000}),
    ("pool", RANDOM | {"pool": None}),
    ("pool.max", RANDOM | {"pool": POOL | {"max": 99}}),
    ("pool.budget", RANDOM | {"pool": POOL | {"budget": 99_999}}),
    ("pool.budget", RANDOM | {"pool": POOL | {"budget": 8_800_001}}),
    ("pool.tiers", RANDOM | {"pool": POOL | {"distribution": "tiered"}}),
    ("pool.tiers", RANDOM | {"pool": POOL | {"tiers": TIERS}}),
    ("pool.tiers", RANDOM | {"pool": POOL | {"distribution": "tiered", "tiers": []}}),
    ("pool.tiers", RANDOM | {"pool": POOL | {"distribution": "tiered", "tiers": "all"}}),
    ("pool.tiers.1.min", RANDOM | {"pool": POOL | {"distribution": "tiered", "tiers": [TIERS[0], TIERS[0]]}}),
    ("pool.tiers.0.min", RANDOM | {"pool": POOL | {"min": 101, "distribution": "tiered", "tiers": TIERS}}),
    ("pool.tiers.1.max", RANDOM | {"pool": POOL | {"max": 8799, "distribution": "tiered", "tiers": TIERS}}),
    ("pool.tiers.0.max", RANDOM | {"pool": POOL | {"distribution": "tiered", "tiers": [TIERS[0] | {"max": 99}]}}),
    ("pool.tiers.0.weight", RANDOM | {"pool": POOL | {"distribution": "tiered", "tiers": [TIERS[0] | {"weight": 0}]}}),
    (
        "pool.tiers.0.weight",
        RANDOM | {"pool": POOL | {"distribution": "tiered", "tiers": [TIERS[0] | {"weight": 1.5}]}},
    ),
    # 900 of the values sum to 90,000 at least, 100 to 50,100.
    ("pool.budget", RANDOM | {"pool": POOL | {"budget": 140_099, "distribution": "tiered", "tiers": TIERS}}),
    ("pool.budget", RANDOM | {"pool": POOL | {"budget": 1_330_001, "distribution": "tiered", "tiers": TIERS}}),
    ("total_quantity", RANDOM | {"total_quantity": 1_000_001, "pool": POOL | {"budget": 200_000_000}}),
    ("restock_on_revoke", RANDOM | {"restock_on_revoke": True}),
    ("pool.distribution", RANDOM | {"pool": POOL | {"distribution": "fair"}}),
    ("claim_end", GOOD | {"claim_end": GOOD["claim_start"]}),
    ("claim_end", GOOD | {"claim_end": "2036-11-13T00:00:00+08:00"}),
    ("validity.to", GOOD | {"validity": FIXED | {"from": "2026-10-01T00:00:00Z", "to": "2026-11-01T00:00:00Z"}}),
    ("validity.to", GOOD | {"validity": FIXED | {"to": "2026-11-09T00:00:00Z", "until_end_of_day": True}}),
    ("per_user_daily_limit", GOOD | {"per_user_limit": 2, "per_user_daily_limit": 3}),
]


@pytest.mark.parametrize(("field", "body"), BROKEN_RULES)
def test_a_broken_rule_names_the_field_to_repair(field: str, body: dict[str, Any]) -> None:
    """And it alone."""
    assert [field] == fields_in_error(body)


def test_rules_are_asked_of_what_is_well_formed_beside_bad_fields() -> None:
    """One answer names the bad fields and the broken rules between the others, also within an object."""
    body = RANDOM | {
        "name": 7,
        "amount": 2000,
        "pool": {"min": 100, "max": 99, "budget": 1, "distribution": "fair"},
        "claim_end": GOOD["claim_start"],
        "validity": FIXED | {"to": FIXED["from"], "colour": "red"},
        "per_user_daily_limit": 2,
        "colour": "red",
    }

    fields = fields_in_error(body)

    expected = [
        "amount",
        "claim_end",
        "colour",
        "name",
        "per_user_daily_limit",
        "pool.distribution",
        "pool.max",
        "validity.colour",
        "validity.to",
    ]
    assert expected == fields


@given(st.lists(st.sampled_from(BAD_FIELDS), min_size=1, max_size=20, unique_by=lambda bad: bad[0].split(".")[0]))
def test_any_set_of_bad_fields_is_reported_at_once(bad: list[tuple[str, Any]]) -> None:
    """Each is named, however many there are."""
    fields = fields_in_error(GOOD | {field.split(".")[0]: value for field, value in bad})

    assert {field for field, _ in bad} <= set(fields)


def test_required_fields_are_named_all() -> None:
    """An empty object hears of each."""
    expected = ["claim_end", "claim_start", "currency", "name", "total_quantity", "type", "validity"]

    assert expected == fields_in_error({})


@pytest.mark.parametrize("body", [None, [], "{}", 7, True])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    """The error is of the body as a whole."""
    assert [""] == fields_in_error(body)


@pytest.mark.parametrize("name", ["\ud800", "nul\x00", "a.b", "", "0", "\u202e"])
def test_an_unknown_field_with_an_odd_name_is_refused_and_can_be_answered(name: str) -> None:
    """The answer is a text that can be sent."""
    fields = fields_in_error(GOOD | {name: 1})

    assert 1 == len(fields)
    json.dumps(fields).encode()
    fields[0].encode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first text drawn builds a table of Unicode
@given(st.dictionaries(st.sampled_from([*GOOD, *RANDOM, "scope", "stacking", "refund", "colour"]), json_values))
def test_no_value_whatever_breaks_the_validation(changes: dict[str, Any]) -> None:
    """Any JSON is taken or refused by name, and nothing else happens."""
    for field in fields_in_error(GOOD | changes):
        assert isinstance(field, str)


@given(st.sampled_from([GOOD, PERCENT, RANDOM, GOOD | {"validity": FIXED}]))
def test_a_template_that_is_answered_is_a_good_body(body: dict[str, Any]) -> None:
    """Written out and read again it is the same."""
    template = TemplateBody.model_validate(body)

    again = TemplateBody.model_validate(json.loads(template.model_dump_json(by_alias=True)))

    assert template == again
