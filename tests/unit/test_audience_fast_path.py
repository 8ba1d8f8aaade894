"""However a CSV file is read - at one go, row by row, cut anywhere - it is the same audience."""

from __future__ import annotations

import csv
import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.campaigns.audience import Audience
from coupon_workers.campaigns.audience_id import all_plain, id_problem, read_carefully, read_cells
from coupon_workers.campaigns.audience_record import read_records, split_fields
from coupon_workers.campaigns.csv_audience import read_csv
from coupon_workers.claiming.claim_request import user_id_problem
from coupon_workers.errors import AudienceFileError
from tests.support.audience_reading import AudienceCount, Read, model_records, read_by_model, read_whole

PIECES = ("1001", "007", "a-b:c_d", "1e-5", "-2E-3", "1.5E+17", " ", "\t", "", ",", '"', '""', "\n", "\r\n", "\r", "é",
          "会", "x" * 64, "y" * 65, "\x0b", "\u2028", ";", "E", "+")  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=60).map("".join)
cells = st.lists(
    st.sampled_from(PIECES) | st.text(max_size=8) | st.from_regex(r"-?[0-9]{1,3}[eE]-[0-9]", fullmatch=True)
)


@st.composite
def csv_texts(draw: st.DrawFn) -> str:
    """A header, and anything that has no NUL, which ends a file of text, and can be written as UTF-8."""
    header = draw(st.sampled_from(("user_id", "n,user_id", '"a\nb",USER_ID ,c', "\n\r\n,\nuser_id,x")))
    return header + draw(st.sampled_from(("\n", "\r\n", "\r"))) + draw(texts).replace("\0", "").encode(
        "utf-8", "ignore"
    ).decode("utf-8")  # fmt: skip


@given(csv_texts(), st.lists(st.integers(0, 200), max_size=6), st.integers(1, 7))
def test_any_text_cut_anywhere_reads_as_the_model_reads_it(text: str, cuts: list[int], batch_rows: int) -> None:
    """Where the model meets the end within quotes, so does the reader."""
    edges = [0, *sorted(cuts), len(text)]
    blocks = [text[start:end] for start, end in pairwise(edges)]

    try:
        expected = read_by_model(text)
    except ValueError:
        expected = None
    try:
        batches = list(read_csv(blocks, batch_rows))
    except AudienceFileError as error:
        assert (None, "TRUNCATED") == (expected, error.code)
        return

    count = AudienceCount()
    for batch in batches:
        count.add(batch)
    valid = [row for batch in batches for row in batch.valid]
    assert expected == Read(valid, [row for batch in batches for row in batch.invalid], count)
    assert batch_rows >= max((len(batch.valid) + len(batch.invalid) for batch in batches), default=0)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_cut_within_a_newline_or_quotes_is_none(length: int) -> None:
    """Blocks of a few characters."""
    text = 'n,user_id\r\n\r\n"a\r\n""b""\r",1\r\r\n5" x,2\n"""",3\r'

    pieces = [text[at : at + length] for at in range(0, len(text), length)]

    assert read_by_model(text).valid == [row for batch in read_csv(pieces, 9) for row in batch.valid]


@given(csv_texts())
def test_bytes_read_as_their_text(text: str) -> None:
    """Through the whole reader, as UTF-8."""
    try:
        expected = read_by_model(text)
    except ValueError:
        return

    assert expected == read_whole(text.encode())


@given(cells)
def test_cells_looked_at_together_are_sorted_as_one_by_one(row: list[str]) -> None:
    """Also those that look like the fast way's own separators."""
    assert read_carefully(row, 7, lambda at: at % 2 == 0) == read_cells(row, 7, lambda at: at % 2 == 0)


def test_common_ids_take_the_fast_way() -> None:
    """Numbers, UUIDs, e-mails not."""
    assert all_plain(["1001", "007", "de305d54-75b4-431b-adb2-eb6b9e546014", "shop:1_2", "x" * 64])
    assert not all_plain(["1001", "1e-5"])
    assert not all_plain(["1001", "10\n02"])
    assert not all_plain(["1001", "a@b.com"])


@given(st.text(max_size=70) | st.from_regex(r"[0-9.,eE+-]{1,12}", fullmatch=True))
def test_an_id_is_one_by_the_rule_of_claims(user_id: str) -> None:
    """Save for numbers in scientific notation, which are refused here alone."""
    problem = id_problem(user_id)

    if problem is None:
        assert user_id_problem(user_id) is None
    elif "scientific" in problem:
        assert set(user_id) <= set("0123456789.,eE+-")
    else:
        assert user_id_problem(user_id) is not None


@given(texts)
def test_fields_are_those_of_the_csv_module(text: str) -> None:
    """And of the model: three ways to the same."""
    try:
        expected = model_records(text)
    except ValueError:
        return

    records = [record for part in read_records([text], quotes=True) for record in part]

    assert expected == [split_fields(record) for record in records]
    assert expected == [fields or [""] for fields in csv.reader(records)]


@given(csv_texts(), st.integers(1, 5))
def test_a_stream_may_give_little_at_a_time(text: str, size: int) -> None:
    """Blocks are filled before they are looked at."""

    class Slow(io.BytesIO):
        def read(self, wanted: int | None = -1) -> bytes:
            return super().read(size if wanted else 0)

    try:
        expected = read_whole(text.encode())
    except AudienceFileError:
        return

    audience = Audience(Slow(text.encode()), "users.csv")

    assert expected.valid == [row for batch in audience for row in batch.valid]
