"""An audience from CSV: rows as a spreadsheet numbers them, ids as they are written."""

from __future__ import annotations

import pytest

from coupon_workers.campaigns.audience_batch import AudienceCount
from coupon_workers.errors import AudienceFileError
from tests.support.audience_reading import REASONS, read_whole

LONGEST = "x" * 64


def test_the_spreadsheets_file_is_read_to_the_letter() -> None:
    """CASES 30: a mark, all kinds of rows, and each row with its number."""
    content = b"\xef\xbb\xbfuser_id\r\n1001\r\n\r\n1002 \r\n1001\r\n4.68769E+17\r\n007\r\n"

    read = read_whole(content)

    assert [(2, "1001"), (4, "1002"), (5, "1001"), (7, "007")] == read.valid
    assert [(6, "4.68769E+17", REASONS["scientific"])] == read.invalid
    assert AudienceCount(valid=4, invalid=1, blank=1) == read.count
    assert 5 == read.count.rows


@pytest.mark.parametrize("header", ["user_id", "USER_ID", " User_Id ", '"user_id"', "\u3000user_id"])
@pytest.mark.parametrize("layout", ["{},name,city", "name,{},city", "name,city,{}"])
def test_the_column_is_found_by_its_name(header: str, layout: str) -> None:
    """Wherever it stands, in any case, with blanks around it."""
    row = layout.replace("name", "n").replace("city", "c").format("1001")

    read = read_whole(f"{layout.format(header)}\n{row}\n".encode())

    assert [(2, "1001")] == read.valid


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_every_newline_ends_a_row(newline: str, last: bool) -> None:
    """And the last row needs none."""
    read = read_whole((newline.join(["user_id", "1", "", "2"]) + newline * last).encode())

    assert [(2, "1"), (4, "2")] == read.valid
    assert 1 == read.count.blank


def test_newlines_may_be_mixed() -> None:
    """As files have them that went through several hands."""
    read = read_whole(b"user_id\r\n1\n2\r3\n\r4\r\r\n5")

    assert [(2, "1"), (3, "2"), (4, "3"), (6, "4"), (8, "5")] == read.valid


def test_other_characters_end_no_row() -> None:
    """Those that Python's splitlines() would take for newlines make an id invalid."""
    read = read_whole("user_id\n1\x0b2\n1\u20282\n1\x852\n".encode())

    assert [2, 3, 4] == [row.row_no for row in read.invalid]
    assert {REASONS["invisible"]} == {row.reason for row in read.invalid}


def test_a_row_of_several_lines_counts_once() -> None:
    """As a spreadsheet shows it."""
    read = read_whole(b'note,user_id\r\n"two\r\nlines",1\r\n"a ""word"", and\nmore",2\r\nplain,"3"\r\n')

    assert [(2, "1"), (3, "2"), (4, "3")] == read.valid


def test_a_quote_amid_a_field_is_a_character() -> None:
    """A screen of 5\" does not swallow the rows below."""
    read = read_whole(b'note,user_id\n5" screen,1\n6" screen,2\n')

    assert [(2, "1"), (3, "2")] == read.valid


def test_rows_of_nothing_are_blank_and_rows_without_a_user_are_not() -> None:
    """A spreadsheet writes blank rows with commas."""
    read = read_whole(b'user_id,name\n,\n" ","\t"\n  \n,Li\n\n1,\n')

    assert [(5, "", REASONS["empty"])] == read.invalid
    assert [(7, "1")] == read.valid
    assert 4 == read.count.blank


def test_blank_rows_before_the_header_count() -> None:
    """So that numbers stay those of the spreadsheet."""
    read = read_whole(b"\n,,\nuser_id\n1\n")

    assert [(4, "1")] == read.valid
    assert 2 == read.count.blank


def test_a_short_row_has_no_user() -> None:
    """The column is beyond its end."""
    read = read_whole(b"name,user_id\nLi\nLi,1\n")

    assert [(2, "", REASONS["empty"])] == read.invalid
    assert [(3, "1")] == read.valid


@pytest.mark.parametrize(
    "user_id", ["007", "1e5", "2E10", "-1", "1.50", "a@b.com", "用户1", LONGEST, "=1", "1e5f", "e+1"]
)
def test_an_id_is_the_text_that_it_is(user_id: str) -> None:
    """No number is read out of it."""
    assert [(2, user_id)] == read_whole(f"user_id\n {user_id}\t\n".encode()).valid


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("4.68769E+17", "scientific"),
        ("4.68769e+17", "scientific"),
        ("4.68769E17", "scientific"),
        ('"4,68769E+17"', "scientific"),
        ("5E+17", "scientific"),
        ("-1e-05", "scientific"),
        (".5e+10", "scientific"),
        (LONGEST + "x", "long"),
        ("1 2", "space"),
        ("1\t2", "invisible"),
        ("1\u30002", "invisible"),
        ("1\u200b", "invisible"),
        ('"1\n"', "invisible"),
        ("\x7f", "invisible"),
    ],
)
def test_what_is_no_id_is_told_with_its_reason(cell: str, reason: str) -> None:
    """Precisely: a person has to mend it."""
    [row] = read_whole(f"user_id\n{cell}\n".encode()).invalid

    assert (2, REASONS[reason]) == (row.row_no, row.reason)


def test_a_bad_value_is_shown_short_and_printable() -> None:
    """Any store and any screen can take it."""
    rows = read_whole(f"user_id\n1\x072\n{'y' * 1_000}\n".encode()).invalid

    assert ["1\\x072", "y" * 64 + "…"] == [row.value for row in rows]


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"", "EMPTY_FILE", "is empty"),
        (b"\xef\xbb\xbf", "EMPTY_FILE", "is empty"),
        (b"\r\n,,\r\n", "EMPTY_FILE", "is empty"),
        (b"1001\n1002\n", "HEADER_MISSING", "has no header: its first row must name a column user_id"),
        (b"uid,name\n1,Li\n", "COLUMN_MISSING", '"uid", "name"'),
        (b"user_id;name\n1;Li\n", "COLUMN_MISSING", '"user_id;name"'),
        (b"user_id,name,User_ID\n", "COLUMN_AMBIGUOUS", "has 2 columns user_id"),
        (b",".join([b"c" * 99] * 99) + b"\n", "COLUMN_MISSING", ", …"),
        (b'user_id\n1\n2,"x\n3\n', "TRUNCATED", "ends within quotes that were opened in row 3"),
        (b'"user_id\n1\n', "TRUNCATED", "ends within quotes that were opened in row 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_precisely(content: bytes, code: str, message: str) -> None:
    """With a code for programs and words for people."""
    with pytest.raises(AudienceFileError) as refusal:
        read_whole(content)

    assert code == refusal.value.code
    assert message in str(refusal.value)
    assert 600 > len(str(refusal.value))


def test_a_file_of_a_header_only_has_nobody() -> None:
    """It is whole, and empty."""
    assert AudienceCount() == read_whole(b"name,user_id\n").count


def test_batches_have_no_more_rows_than_asked_for() -> None:
    """Each in the order of the file."""
    read = read_whole(b"user_id\n" + b"".join(b"%d\n" % number for number in range(95)), batch_rows=10)

    assert [(number + 2, str(number)) for number in range(95)] == read.valid
