"""An audience from Parquet: a column of strings or integers, in record batches."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coupon_workers.campaigns.audience import Audience, AudienceFormat
from coupon_workers.campaigns.audience_batch import AudienceCount
from coupon_workers.errors import AudienceFileError
from tests.support.audience_reading import REASONS, MadeStream, read_whole


def parquet(column: Any, name: str = "user_id", **options: Any) -> bytes:
    """A file with a column of users between two others."""
    file = io.BytesIO()
    others = pa.array(range(len(column)))
    pq.write_table(pa.Table.from_arrays([others, column, others], names=["a", name, "z"]), file, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_strings_are_the_text_that_they_are(kind: Any, use_dictionary: bool) -> None:
    """However they are kept; what is no id is told with its row."""
    values = ["007", None, " 1002\u3000", "4.68769E+17", "007", "a b", "x" * 65, "", "会员"]

    read = read_whole(parquet(pa.array(values, pa.string()).cast(kind), use_dictionary=use_dictionary))

    assert [(1, "007"), (3, "1002"), (5, "007"), (9, "会员")] == read.valid
    reasons = [(2, "empty"), (4, "scientific"), (6, "space"), (7, "long"), (8, "empty")]
    assert [(row, REASONS[reason]) for row, reason in reasons] == [(bad.row_no, bad.reason) for bad in read.invalid]
    assert AudienceCount(valid=4, invalid=5) == read.count


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.int8()])
def test_integers_are_read_as_decimal_text(kind: Any) -> None:
    """They are exact however large: Parquet has no floats in disguise."""
    limit = 2 ** (kind.bit_width - 1) - 1

    read = read_whole(parquet(pa.array([7, None, limit, -1], kind)))

    assert [(1, "7"), (3, str(limit)), (4, "-1")] == read.valid
    assert [(2, "", REASONS["empty"])] == read.invalid


def test_the_largest_unsigned_integer_is_an_id() -> None:
    """All of its twenty digits."""
    assert [(1, "18446744073709551615")] == read_whole(parquet(pa.array([2**64 - 1], pa.uint64()))).valid


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"dictionary_pagesize_limit": 1024}])
def test_row_groups_follow_one_another(options: dict[str, Any]) -> None:
    """Rows are counted through; a dictionary may be given up within a group."""
    values = [f"u{number % 700}" for number in range(5_000)]

    read = read_whole(parquet(pa.array(values), row_group_size=900, **options), batch_rows=128)

    assert list(enumerate(values, 1)) == read.valid


@pytest.mark.parametrize("name", ["user_id", " User_ID ", "USER_ID"])
def test_the_column_is_found_by_its_name(name: str) -> None:
    """In any case, with blanks around it."""
    assert [(1, "1")] == read_whole(parquet(pa.array(["1"]), name)).valid


@pytest.mark.parametrize(
    ("column", "name", "code", "message"),
    [
        (pa.array([1.0]), "user_id", "COLUMN_TYPE", "user_id as double"),
        (pa.array([True]), "user_id", "COLUMN_TYPE", "bool"),
        (pa.array([["1"]]), "user_id", "COLUMN_TYPE", "list"),
        (pa.array([b"1"]), "user_id", "COLUMN_TYPE", "binary"),
        (pa.array(["1"]), "uid", "COLUMN_MISSING", '"a", "uid", "z"'),
    ],
)
def test_another_column_is_refused(column: Any, name: str, code: str, message: str) -> None:
    """A float has lost its digits already."""
    with pytest.raises(AudienceFileError) as refusal:
        read_whole(parquet(column, name))

    assert code == refusal.value.code
    assert message in str(refusal.value)


def test_a_broken_file_is_refused_wherever_it_is_cut_or_changed() -> None:
    """And never read as another audience's."""
    whole = parquet(pa.array([f"user-{number}" for number in range(3_000)]), compression="none")

    for length in range(4, len(whole), 997):
        assert "TRUNCATED" == refusal_of(whole[:length]).code
    assert "NOT_PARQUET" == refusal_of(b"PAR1" + b"\0" * 40 + b"PAR1").code
    assert "NOT_PARQUET" == refusal_of(whole[:-8] + b"\xff\xff\xff\x7fPAR1").code
    at = whole.index(b"user-1")
    assert "NOT_PARQUET" == refusal_of(whole[:at] + b"\xff" * 2_000 + whole[at + 2_000 :]).code


def test_a_file_that_is_only_called_parquet_is_refused() -> None:
    """Its name makes a promise."""
    assert "NOT_PARQUET" == refusal_of(b"user_id\n1\n").code
    assert "EMPTY_FILE" == refusal_of(b"").code


def test_a_stream_must_be_seekable() -> None:
    """The directory of the file is at its end; that is for the caller to see to."""
    whole = parquet(pa.array(["1"]))

    with pytest.raises(ValueError, match="seekable"):
        Audience(MadeStream(iter([whole])), "users.parquet")  # type: ignore[arg-type]


def test_long_text_that_rows_share_is_there_once() -> None:
    """A file of 2 KiB does not become gigabytes: 1,000 rows of one text of 1 MiB, after rows as they should be."""
    good = pa.array(["1"] * 1_000, pa.string()).dictionary_encode()
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["x" * 2**20]))
    # Without the schema of Arrow, which would have it read by its dictionary in any case.
    options = {
        "store_schema": False,
        "row_group_size": 1_000,
        "dictionary_pagesize_limit": 2**30,
        "compression": "zstd",
    }
    whole = parquet(pa.chunked_array([good, long]), **options)
    audience = Audience(io.BytesIO(whole))

    in_use = [pa.total_allocated_bytes() for _ in audience]

    assert AudienceFormat.PARQUET == audience.format
    assert AudienceCount(valid=1_000, invalid=1_000) == audience.count
    assert 2**26 > max(in_use)


def refusal_of(content: bytes) -> AudienceFileError:
    """Why a file that is called Parquet is not read."""
    with pytest.raises(AudienceFileError) as refusal:
        read_whole(content, "users.parquet")
    return refusal.value
