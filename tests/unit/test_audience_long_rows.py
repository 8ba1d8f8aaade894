"""Rows longer than anybody means are skipped, and never kept; memory stays flat."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from coupon_workers.campaigns.audience import Audience
from coupon_workers.campaigns.audience_record import MAX_RECORD_LENGTH
from coupon_workers.campaigns.csv_audience import read_csv
from coupon_workers.errors import AudienceFileError
from tests.support.audience_reading import REASONS, MadeStream, gather, read_whole

MIB = 1024 * 1024
LONG = "z" * (MAX_RECORD_LENGTH + MIB // 2)


@pytest.mark.parametrize("more", [1, MIB // 2], ids=["in one block", "in several blocks"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "row",
    ["{}", "1,{}", '"{}""\n\r,x",1', '"{}"x"y', 'a{},"b\n"', '{}"', '""{}"', '"{}\n","\n"",\n"', '{},"\n"'],
    ids=repr,
)
def test_a_long_row_is_one_invalid_row(row: str, newline: str, more: int) -> None:
    """Whatever it is made of, reading goes on below it."""
    row = row.format("z" * (MAX_RECORD_LENGTH + more))

    read = read_whole(f"user_id,n{newline}1{newline}{row}{newline}2{newline}".encode())

    assert [(2, "1"), (4, "2")] == read.valid
    assert [(3, REASONS["long row"])] == [(bad.row_no, bad.reason) for bad in read.invalid]
    assert 65 >= len(read.invalid[0].value)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_bound_is_sharp(over: int) -> None:
    """1 MiB of characters is a row; one more is none."""
    read = read_whole(b"user_id,n\n1," + b"n" * (MAX_RECORD_LENGTH - 2 + over) + b"\n2\n")

    assert ([2, 3] if over <= 0 else [3]) == [row.row_no for row in read.valid]


@pytest.mark.parametrize("end", ["", "\r", "\n"])
def test_a_long_row_may_be_the_last(end: str) -> None:
    """With or without its newline."""
    assert [2] == [row.row_no for row in read_whole(f"user_id\n{LONG}{end}".encode()).invalid]


def test_quotes_that_are_never_closed_are_no_long_row() -> None:
    """The rest of the file would be lost in them."""
    with pytest.raises(AudienceFileError, match="opened in row 3") as refusal:
        read_whole(f'user_id\n1\n"{LONG}\n2\n'.encode())

    assert "TRUNCATED" == refusal.value.code


def test_rows_below_a_long_one_keep_their_numbers() -> None:
    """In messages, too."""
    with pytest.raises(AudienceFileError, match="opened in row 4"):
        read_whole(f'user_id\n{LONG}\n1\n"x\n'.encode())


@pytest.mark.parametrize("below", ["\n2\r\n", "2\r"])
def test_the_newline_of_a_long_row_may_be_cut_by_a_block(below: str) -> None:
    """It is one all the same."""
    batches = list(read_csv([f"user_id\r\n{LONG}", "z\r", below], 10))

    assert [(3, "2")] == [row for batch in batches for row in batch.valid]
    assert 0 == sum(batch.blank for batch in batches)


def test_a_long_header_is_no_header() -> None:
    """It is not searched for a column."""
    with pytest.raises(AudienceFileError) as refusal:
        read_whole(f"{LONG},user_id\n1\n".encode())

    assert "HEADER_MISSING" == refusal.value.code


def test_a_long_line_of_jsonl_is_one_invalid_row() -> None:
    """Like one of CSV."""
    read = read_whole(f'{{"user_id": "1"}}\n{{"n": "{LONG}"}}\n"2"\n'.encode(), "users.jsonl")

    assert [(1, "1"), (3, "2")] == read.valid
    assert [(2, REASONS["long row"])] == [(bad.row_no, bad.reason) for bad in read.invalid]


@pytest.mark.parametrize("start", [b"", b'"', b"1,"])
def test_a_line_without_end_takes_no_memory(start: bytes) -> None:
    """128 MiB in one row, in quotes or not."""
    tail = (b'"' if start == b'"' else b"") + b"\n7\n"

    peak, valid = peak_of(chain((b"user_id,n\n", start), repeat(b"y" * MIB, 128), (tail,)))

    assert [(3, "7")] == valid
    assert 10 * MIB > peak


def test_a_million_rows_take_no_memory() -> None:
    """Beside those of the batch at hand."""
    peak, valid = peak_of(chain((b"user_id\n",), (b"%09d\n" % (number // 50 * 7) * 50 for number in range(1000))))

    assert 1000 * 50 == len(valid)
    assert 20 * MIB > peak


def peak_of(pieces: Iterator[bytes]) -> tuple[int, list[tuple[int, str]]]:
    """The most bytes that were in use while reading, and the good rows."""
    audience = Audience(MadeStream(pieces), "users.csv")  # type: ignore[arg-type]
    tracemalloc.start()
    try:
        read = gather(audience)
        return tracemalloc.get_traced_memory()[1], [tuple(row) for row in read.valid]
    finally:
        tracemalloc.stop()
