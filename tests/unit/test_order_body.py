"""The body of an order: its types and bounds, its rules, and every error named at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from coupon_workers.orders.order import MAX_LINES, OrderBody
from coupon_workers.templates.field_type import MAX_EXACT
from coupon_workers.templates.whole_body import errors_of

LINE: dict[str, Any] = {"line_id": "1", "product_id": "p9", "category_id": "c1", "unit_price": 10_000, "quantity": 3}
GOOD: dict[str, Any] = {"user_id": "u-1", "currency": "CNY", "channel": "app", "lines": [LINE]}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def with_lines(*changes: dict[str, Any]) -> dict[str, Any]:
    """A good order with a line for each change, numbered, changed."""
    return GOOD | {"lines": [LINE | {"line_id": str(number)} | change for number, change in enumerate(changes)]}


def fields_in_error(body: Any) -> list[str]:
    """The fields that a body is refused for, each once, sorted; none for a good one."""
    try:
        OrderBody.model_validate(body)
    except ValidationError as error:
        return sorted({field for field, _ in errors_of(error)})
    return []


def test_an_order_is_read_as_it_is_sent() -> None:
    """The example of the contract."""
    order = OrderBody.model_validate(GOOD)

    assert "u-1" == order.user_id
    assert [30_000] == [line.amount_minor for line in order.lines]
    assert 30_000 == order.subtotal_minor


def test_what_may_be_left_out_has_no_value() -> None:
    """Channel, tags, and a line's category."""
    line = {name: value for name, value in LINE.items() if name != "category_id"}

    order = OrderBody.model_validate({"user_id": "u-1", "currency": "CNY", "lines": [line]})

    assert (None, [], None) == (order.channel, order.user_tags, order.lines[0].category_id)


def test_integers_are_read_as_the_texts_that_they_are() -> None:
    """Users, lines, products, categories and tags."""
    numbers = {"line_id": 1, "product_id": 9, "category_id": 7}

    order = OrderBody.model_validate(GOOD | {"user_id": 1001, "user_tags": [5], "lines": [LINE | numbers]})

    line = order.lines[0]
    assert ("1001", ["5"], "1", "9", "7") == (
        order.user_id,
        order.user_tags,
        line.line_id,
        line.product_id,
        line.category_id,
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"user_id": "a b"}, "user_id"),
        ({"user_id": ""}, "user_id"),
        ({"user_id": "u" * 65}, "user_id"),
        ({"user_id": True}, "user_id"),
        ({"user_id": 1.0}, "user_id"),
        ({"user_id": None}, "user_id"),
        ({"user_id": 2**53}, "user_id"),
        ({"user_id": "u\x00"}, "user_id"),
        ({"currency": "cny"}, "currency"),
        ({"currency": "XXX"}, "currency"),
        ({"channel": "a,b"}, "channel"),
        ({"user_tags": "vip"}, "user_tags"),
        ({"user_tags": [None]}, "user_tags.0"),
        ({"lines": []}, "lines"),
        ({"lines": {}}, "lines"),
        ({"lines": None}, "lines"),
        ({"lines": ["1"]}, "lines.0"),
        ({"total": 3}, "total"),
    ],
)
def test_a_bad_field_is_named(change: dict[str, Any], field: str) -> None:
    """And nothing else is."""
    assert [field] == fields_in_error(GOOD | change)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"unit_price": -1}, "unit_price"),
        ({"unit_price": 9.5}, "unit_price"),
        ({"unit_price": 10.0}, "unit_price"),
        ({"unit_price": "10"}, "unit_price"),
        ({"unit_price": True}, "unit_price"),
        ({"unit_price": 2**53}, "unit_price"),
        ({"quantity": 0}, "quantity"),
        ({"quantity": -2}, "quantity"),
        ({"quantity": 1.5}, "quantity"),
        ({"quantity": None}, "quantity"),
        ({"line_id": ""}, "line_id"),
        ({"product_id": None}, "product_id"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_field_of_a_line_is_named_with_its_line(change: dict[str, Any], field: str) -> None:
    """Counted from 0, as JSON does."""
    assert [f"lines.1.{field}"] == fields_in_error(with_lines({}, change))


@pytest.mark.parametrize("name", ["user_id", "currency", "lines"])
def test_what_must_be_there_is_named_when_it_is_not(name: str) -> None:
    """Each by itself."""
    assert [name] == fields_in_error({key: value for key, value in GOOD.items() if key != name})


def test_a_line_id_that_comes_twice_is_named_each_time() -> None:
    """As text: 1 and "1" are one."""
    assert ["lines.1.line_id", "lines.3.line_id"] == fields_in_error(
        with_lines({"line_id": "1"}, {"line_id": 1}, {}, {"line_id": "1"})
    )


def test_every_error_is_named_at_once() -> None:
    """Of fields, of lines, and between the lines that are well formed."""
    body = with_lines({"line_id": "a"}, {"quantity": 0}, {"line_id": "a"}, {"unit_price": MAX_EXACT, "quantity": 2})

    assert [
        "currency",
        "lines",
        "lines.1.quantity",
        "lines.2.line_id",
        "lines.3.unit_price",
        "note",
    ] == fields_in_error(body | {"currency": "", "note": 1})


def test_totals_stay_exact_in_any_reader() -> None:
    """2^53 - 1 in all is taken, one unit more is not; and a line may be free."""
    largest = with_lines({"unit_price": MAX_EXACT, "quantity": 1}, {"unit_price": 0})

    assert MAX_EXACT == OrderBody.model_validate(largest).subtotal_minor
    assert ["lines"] == fields_in_error(with_lines({"unit_price": MAX_EXACT, "quantity": 1}, {"unit_price": 1}))
    assert ["lines", "lines.0.unit_price"] == fields_in_error(with_lines({"unit_price": 2**52, "quantity": 2}))


def test_a_thousand_lines_are_taken_and_one_more_is_not() -> None:
    """A limit, not an accident."""
    assert [] == fields_in_error(with_lines(*[{}] * MAX_LINES))
    assert ["lines"] == fields_in_error(with_lines(*[{}] * (MAX_LINES + 1)))


@given(JSON | st.fixed_dictionaries({"user_id": JSON, "currency": JSON, "lines": JSON | st.lists(JSON, max_size=3)}))
def test_whatever_comes_is_read_or_refused(body: Any) -> None:
    """Never anything else."""
    fields_in_error(body)
