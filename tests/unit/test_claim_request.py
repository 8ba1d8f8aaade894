"""A claim as it comes in: what is accepted, what is refused, and that every bad field is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coupon_workers.claiming.claim_request import ClaimRequest, _read_closely, read_claim
from coupon_workers.errors import InvalidInput

FINE: dict[str, Any] = {"template_id": "7001", "user_id": "u-1001", "request_id": "order-form-8f1c"}


def refused_fields(body: object) -> list[str]:
    """The names in the refusal."""
    with pytest.raises(InvalidInput) as refusal:
        read_claim(body)
    return [field for field, _ in refusal.value.errors]


def test_the_three_required_fields_are_a_claim() -> None:
    """No channel was named."""
    assert ClaimRequest(7001, "u-1001", "order-form-8f1c", "") == read_claim(FINE)


def test_every_field_of_the_contract_is_read() -> None:
    """What the claim comes from is for the risk policy to weigh."""
    body = FINE | {"channel": "app", "device_id": "d 1", "ip": "203.0.113.7", "address_hash": "ab12"}

    expected = ClaimRequest(7001, "u-1001", "order-form-8f1c", "app", "d 1", "203.0.113.7", "ab12")
    assert expected == read_claim(body)


@pytest.mark.parametrize(
    ("ip", "expected"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:DB8::1", "2001:db8::"),
        ("2001:db8:0:0:ffff::1", "2001:db8::"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("no:address", "no:address"),
    ],
)
def test_an_address_of_ipv6_is_its_network(ip: str, expected: str) -> None:
    """One customer has as many of these addresses as he likes."""
    assert expected == read_claim(FINE | {"ip": ip}).ip


@pytest.mark.parametrize("name", ["channel", "device_id", "ip", "address_hash"])
def test_an_optional_field_may_be_null(name: str) -> None:
    """As if it were not there."""
    assert read_claim(FINE) == read_claim(FINE | {name: None})


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", 1), ("007", 7), (str(2**63 - 1), 2**63 - 1), (7001, 7001), (2**53 - 1, 2**53 - 1)],
)
def test_a_template_id_is_digits_or_an_exact_integer(value: str | int, expected: int) -> None:
    """Of 64 bits as a string, below 2^53 as a number (API.md, Conventions)."""
    assert expected == read_claim(FINE | {"template_id": value}).template_id


@pytest.mark.parametrize(
    "value",
    [
        *("", "0", "000", "-1", "+1", " 1", "1 ", "1.0", "1e3", "x", "٣", "²", str(2**63), "9" * 30),
        *(0, -1, 2**53, 1.0, True, None, [], {}, b"1"),
    ],
)
def test_anything_else_is_no_template_id(value: object) -> None:
    """Digits of other scripts among it."""
    assert ["template_id"] == refused_fields(FINE | {"template_id": value})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((text, text) for text in ("a", "u" * 64, "張偉", "é🎟", '"\\{},')),
        *((number, str(number)) for number in (1001, -5, 0, 2**53 - 1)),
    ],
)
def test_a_user_id_is_visible_characters_or_an_integer(value: str | int, expected: str) -> None:
    """1 to 64 of them; an integer is read as its decimal text."""
    assert expected == read_claim(FINE | {"user_id": value}).user_id


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "a b", "a\tb", "a\nb", "a\x00b", "a\u00a0b", "a\u200bb", "a\u2028b", "\ud800", "u" * 65),
        *(2**53, 1.5, True, None, ["a"], {"a": 1}, b"a"),
    ],
)
def test_anything_else_is_no_user_id(value: object) -> None:
    """Spaces of any kind, control characters, halves of surrogate pairs."""
    assert ["user_id"] == refused_fields(FINE | {"user_id": value})


@pytest.mark.parametrize("value", ["r", "order 8 form", "r" * 128, "訂單", "a,b"])
def test_a_request_id_is_printable_text(value: str) -> None:
    """1 to 128 characters, spaces among them."""
    assert value == read_claim(FINE | {"request_id": value}).request_id


@pytest.mark.parametrize("value", ["", "a\nb", "a\x00b", "r" * 129, "\ud83d", 7, None, True, []])
def test_anything_else_is_no_request_id(value: object) -> None:
    """A number is not a text."""
    assert ["request_id"] == refused_fields(FINE | {"request_id": value})


@pytest.mark.parametrize("name", ["channel", "device_id", "ip", "address_hash"])
@pytest.mark.parametrize("value", ["", "a\x00", "x" * 129, 7, False, []])
def test_an_optional_field_that_is_there_must_be_text(name: str, value: object) -> None:
    """Of 1 to 128 printable characters."""
    assert [name] == refused_fields(FINE | {name: value})


def test_every_bad_field_is_named_and_unknown_ones_too() -> None:
    """In one answer, so that a caller corrects them in one go."""
    body = {"template_id": "x", "user_id": "a b", "channel": 7, "reqest_id": "r"}

    assert {"template_id", "user_id", "request_id", "channel", "reqest_id"} == set(refused_fields(body))


@pytest.mark.parametrize("missing", FINE)
def test_a_required_field_that_is_not_there_is_named(missing: str) -> None:
    """Once."""
    assert [missing] == refused_fields({name: value for name, value in FINE.items() if name != missing})


@pytest.mark.parametrize("body", [None, [], [FINE], "x", 7, True, ""])
def test_what_is_no_object_is_no_claim(body: object) -> None:
    """And is refused as a whole."""
    assert [""] == refused_fields(body)


ODD = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["0", "1", "7001", str(2**63 - 1), str(2**63), "app", "a b", "", "u" * 64, "u" * 65, "r" * 129]),
    st.integers(),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False),
    st.lists(st.integers(), max_size=1),
)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["template_id", "user_id", "request_id", "channel", "ip", "other"]), ODD, max_size=6
    )
)
def test_the_quick_way_reads_a_claim_as_the_close_look_does(body: dict[str, Any]) -> None:
    """It only saves time: same claim, or same refusal."""

    def outcome(read: Any) -> Any:
        try:
            return read(body)
        except InvalidInput as refusal:
            return refusal.errors

    assert outcome(_read_closely) == outcome(read_claim)
