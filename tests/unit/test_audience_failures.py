"""failures.csv: read back as it was meant, and no formula in it."""

from __future__ import annotations

import csv
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.campaigns.audience_batch import InvalidRow
from coupon_workers.campaigns.failure_file import failure_lines


def test_each_failure_is_a_row() -> None:
    """Below a header, in RFC 4180."""
    lines = failure_lines([InvalidRow(6, "4.68769E+17", "is empty"), InvalidRow(9, 'a "b", c', "has a space in it")])

    assert ["row,value,reason\r\n", "6,4.68769E+17,is empty\r\n", '9,"a ""b"", c",has a space in it\r\n'] == list(lines)


@pytest.mark.parametrize("value", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=HYPERLINK("x")'])
def test_no_cell_is_a_formula(value: str) -> None:
    """An apostrophe makes it text."""
    [_, row] = csv.reader(failure_lines([(2, value, value)]))

    assert ["2", "'" + value, "'" + value] == row


@given(st.lists(st.tuples(st.integers(1), st.text(), st.text()), max_size=5))
def test_everything_else_is_as_it_was(failures: list[tuple[int, str, str]]) -> None:
    """Newlines, quotes and commas within."""
    rows = list(csv.reader(failure_lines(failures)))[1:]

    assert failures == [(int(number), unguarded(value), unguarded(reason)) for number, value, reason in rows]


def test_lines_are_made_when_they_are_wanted() -> None:
    """A million failures are no list."""
    endless = ((number, "x", "y") for number in count(2))

    assert "3,x,y\r\n" == list(islice(failure_lines(endless), 3))[-1]


def unguarded(text: str) -> str:
    """Without the apostrophe of a formula."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(tuple("=+-@\t\r\n＝＋－＠")) else text
