"""Rules whose builders are compiled late are rules like any other."""

from __future__ import annotations

from typing import Any

import pytest
from werkzeug.routing import BuildError, Map, Rule

from web.app import described_application
from web.late_rule import LateRule

RULES = (
    ("/", "home", {}),
    ("/users/<user>/coupons/<int:number>", "coupon", {}),
    ("/files/<path:name>", "file", {}),
    ("/pages/", "page", {"number": 1}),
    ("/pages/<int:number>", "page", {}),
)


def address(kind: type[Rule], endpoint: str, values: dict[str, Any]) -> str:
    """What a map of such rules builds; the name of the error where there is none."""
    rules = [kind(rule, endpoint=name, defaults=defaults or None) for rule, name, defaults in RULES]
    try:
        return Map(rules).bind("shop").build(endpoint, values)
    except BuildError as error:
        return type(error).__name__


@pytest.mark.parametrize(
    ("endpoint", "values"),
    [
        ("home", {}),
        ("home", {"wait": "5 s", "none": None}),
        ("coupon", {"user": "ann/1 ü", "number": 7}),
        ("coupon", {"user": "ann", "number": 7, "limit": [1, 2]}),
        ("coupon", {"user": "ann"}),
        ("file", {"name": "a/b c.csv"}),
        ("page", {}),
        ("page", {"number": 1}),
        ("page", {"number": 2}),
        ("nothing", {}),
    ],
)
def test_an_address_is_put_together_as_by_any_rule(endpoint: str, values: dict[str, Any]) -> None:
    """With converters, defaults, what goes into the query, and what cannot be built; the second time too."""
    for _ in range(2):
        assert address(Rule, endpoint, values) == address(LateRule, endpoint, values)


def test_nothing_is_compiled_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is what the rule is for."""
    compiled: list[str] = []
    compile_now = Rule._compile_builder

    def note(rule: Rule, append_unknown: bool = True) -> Any:
        compiled.append(rule.rule)
        return compile_now(rule, append_unknown)

    monkeypatch.setattr(Rule, "_compile_builder", note)
    urls = Map([LateRule("/a", endpoint="a"), LateRule("/b", endpoint="b")]).bind("shop")
    assert [] == compiled

    assert ["/a", "/a", "/b"] == [urls.build(name) for name in ("a", "a", "b")]

    assert ["/a", "/b"] == compiled


def test_every_rule_of_the_application_is_one() -> None:
    """Whatever registers it."""
    assert {LateRule} == {type(rule) for rule in described_application().url_map.iter_rules()}
