"""JSON bodies are read strictly: what two readers could read differently is refused."""

from __future__ import annotations

import pytest

from web.json_body import parse_object
from web.problem import ProblemError


def test_an_object_is_read_as_it_is_written() -> None:
    """Names keep their order, numbers their exactness, text its characters."""
    parsed = parse_object('{"b": 636507967185264641, "a": [1.5, true, null], "c": "优惠券 \\ud83d\\ude00"}'.encode())

    assert {"b": 636507967185264641, "a": [1.5, True, None], "c": "优惠券 😀"} == parsed
    assert ["b", "a", "c"] == list(parsed)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b'{"a": 1,}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": 1, "a": 2}',
        b'{"o": {"a": 1, "\\u0061": 2}}',
        b'{"a": "\x00"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\xff"}',
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 5_000 + b"}",
    ],
)
def test_what_is_not_strict_json_is_malformed(body: bytes) -> None:
    """400, whatever is wrong with it."""
    with pytest.raises(ProblemError) as refusal:
        parse_object(body)

    assert (400, "MALFORMED_JSON") == (refusal.value.status, refusal.value.code)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b" ", "the body is empty"),
        (b'{"a": 1,\n "b" 2}', "the body is not valid JSON: look at line 2, column 6"),
        (b"{} {}", "the body is not valid JSON: look at line 1, column 4"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "a number in the body is too long"),
    ],
)
def test_it_is_told_where_the_body_stops_being_json(body: bytes, detail: str) -> None:
    """In a sentence of ours, by line and column."""
    with pytest.raises(ProblemError) as refusal:
        parse_object(body)

    assert detail == refusal.value.detail


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"{}"', b"true"])
def test_another_value_than_an_object_breaks_a_rule(body: bytes) -> None:
    """422: it is JSON, but no body of ours."""
    with pytest.raises(ProblemError) as refusal:
        parse_object(body)

    assert (422, "VALIDATION_FAILED") == (refusal.value.status, refusal.value.code)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"a": "x\\u0000y"}', "a"),
        (b'{"a": {"b": ["ok", "\\ud800"]}}', "a.b.1"),
        (b'{"a": "\\ude00\\ud83d"}', "a"),
        (b'{"\\ud800": 1}', "?"),
        (b'{"\\u0000": 1}', "\x00"),
    ],
)
def test_text_that_no_database_can_keep_is_named(body: bytes, field: str) -> None:
    """U+0000 and half of a surrogate pair are refused with their place."""
    with pytest.raises(ProblemError) as refusal:
        parse_object(body)

    assert 422 == refusal.value.status
    assert any(named == field or named == "" for named, _ in refusal.value.errors)


def test_a_legal_escape_is_no_reason_to_refuse() -> None:
    """A pair of surrogates is a character, and so is an escaped letter."""
    assert {"a": "A😀"} == parse_object(b'{"a": "\\u0041\\ud83d\\ude00"}')
