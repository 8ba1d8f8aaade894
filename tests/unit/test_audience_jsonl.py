"""An audience from JSONL: an object with ``user_id`` in each line, or the id alone."""

from __future__ import annotations

import pytest

from coupon_workers.campaigns.audience_batch import AudienceCount
from coupon_workers.errors import AudienceFileError
from tests.support.audience_reading import REASONS, read_whole


def test_each_line_has_a_user() -> None:
    """Strings and exact integers; blank lines are skipped and counted."""
    content = b'\xef\xbb\xbf{"user_id": "007", "name": "Li"}\r\n\r\n{"name": "\\u4e2d", "user_id": 1001}\n"u2 "\n42\n'

    read = read_whole(content, "users.jsonl")

    assert [(1, "007"), (3, "1001"), (4, "u2"), (5, "42")] == read.valid
    assert AudienceCount(valid=4, invalid=0, blank=1) == read.count


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1001,", "is not JSON"),
        ("1001", None),
        (str(2**53 - 1), None),
        (str(-(2**53) + 1), None),
        (str(2**53), "is no id: a string, or an integer below 2^53"),
        ("9" * 10_000, "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("1001.0", "is no id: a string, or an integer below 2^53"),
        ("true", "is no id: a string, or an integer below 2^53"),
        ("null", "is no id: a string, or an integer below 2^53"),
        ("NaN", "is no id: a string, or an integer below 2^53"),
        ('["1"]', "is no id: a string, or an integer below 2^53"),
        ('{"user_id": {"user_id": "1"}}', "is no id: a string, or an integer below 2^53"),
        ('{"user": "1"}', "has no user_id"),
        ("{}", "has no user_id"),
        ('{"user_id": ""}', REASONS["empty"]),
        ('"4.68769E+17"', REASONS["scientific"]),
        ('"1\\u00002"', REASONS["invisible"]),
        ('"\\ud800"', REASONS["invisible"]),
        ('"1 2"', REASONS["space"]),
        (f'"{"x" * 65}"', REASONS["long"]),
    ],
)
def test_what_is_no_user_is_told_with_its_line(line: str, reason: str | None) -> None:
    """And the lines around it are read."""
    read = read_whole(f'"a"\n{line}\n"b"\n'.encode(), "users.jsonl")

    assert ([] if reason is None else [(2, reason)]) == [(bad.row_no, bad.reason) for bad in read.invalid]
    assert [1, 3] == [row.row_no for row in read.valid if row.row_no != 2]
    assert 3 == read.count.rows
    assert all(bad.value.isprintable() for bad in read.invalid)


@pytest.mark.parametrize("name", ["users.jsonl", "USERS.NDJSON", "users.csv", "users", ""])
def test_objects_are_seen_for_what_they_are(name: str) -> None:
    """Whatever the file is called."""
    assert [(2, "1")] == read_whole(b'\n{"user_id": "1"}\n', name).valid


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "EMPTY_FILE"), (b"\n \n", "EMPTY_FILE"), (b'[\n{"user_id": "1"}\n]', "NOT_JSONL"), (b'"\xff"', "ENCODING")],
)
def test_a_file_that_is_no_jsonl_is_refused(content: bytes, code: str) -> None:
    """A JSON list is one value, and is told so."""
    with pytest.raises(AudienceFileError) as refusal:
        read_whole(content, "users.jsonl")

    assert code == refusal.value.code
