"""Reading receipts: every row is accounted for, and none is a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from coupon_workers.errors import InvalidInput
from coupon_workers.load.discount_rate import template_terms
from coupon_workers.load.receipt import Receipt, ReceiptCount, read_receipts
from coupon_workers.load.receipt_plan import plan_receipts, template_body

HEADER = "User_id,Merchant_id,Coupon_id,Discount_rate,Distance,Date_received\n"


def file_with(folder: Path, content: str | bytes) -> Path:
    """A file with this content."""
    path = folder / "receipts.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder: Path, content: str | bytes) -> tuple[list[Receipt], ReceiptCount]:
    """The receipts of a file with this content, and its count."""
    count = ReceiptCount()
    return list(read_receipts(file_with(folder, content), count)), count


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    """Another order, more columns, a byte order mark, quotes and CRLF change nothing."""
    content = b'\xef\xbb\xbfDate_received, Coupon_id,Extra,"User_id",Discount_rate\r\n20160701,7,x,"0042",150:20\r\n'

    receipts, count = read(tmp_path, content)

    assert [Receipt(2, "0042", "7", "150:20", "20160701")] == receipts
    assert {"read": 1, "skipped": 0, "bad": 0} == {
        "read": count.read,
        "skipped": count.skipped.total(),
        "bad": count.bad.total(),
    }


@pytest.mark.parametrize("content", ["", "\n", "User_id,Coupon_id\n1,2\n"])
def test_missing_columns_are_named(tmp_path: Path, content: str) -> None:
    """A file without the columns is refused before anything is sent."""
    with pytest.raises(InvalidInput, match=r"^header: the file has no column .*Date_received$"):
        read(tmp_path, content)


def test_null_rows_and_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    """A purchase without a coupon is no receipt."""
    receipts, count = read(tmp_path, f"{HEADER}1,2,null,null,0,null\n\n1,2,3,20:1,0,null\n1,2,3,20:1,null,20160701\n")

    assert [5] == [receipt.row for receipt in receipts]
    assert {"Coupon_id is null": 1, "Date_received is null": 1, "a blank line": 1} == count.skipped
    assert [2] == count.examples["Coupon_id is null"]


BAD_ROWS = {
    "1,2,3,20:1,0": "5 fields under 6 columns",
    "1,2,3,20:1,0,20160701,7": "7 fields under 6 columns",
    ",2,3,20:1,0,20160701": "User_id must be 1 to 64 visible characters without spaces",
    "a b,2,3,20:1,0,20160701": "User_id must be 1 to 64 visible characters without spaces",
    "a\x00b,2,3,20:1,0,20160701": "User_id must be 1 to 64 visible characters without spaces",
    '"a\nb",2,3,20:1,0,20160701': "User_id must be 1 to 64 visible characters without spaces",
    "1,2,,20:1,0,20160701": "Coupon_id must be 1 to 64 printable characters",
    "1,2,3,,0,20160701": "Discount_rate is neither like 150:20 nor like 0.9",
    "1,2,3,1,0,20160701": "Discount_rate takes nothing off",
    "1,2,3,20:30,0,20160701": "Discount_rate takes off more than it asks to be spent",
    "1,2,3,20:1,0,20160732": "Date_received is no date like 20160701",
    "1,2,3,20:1,0,2016-7-1": "Date_received is no date like 20160701",
}


@pytest.mark.parametrize("row", BAD_ROWS)
def test_a_bad_row_is_counted_with_its_number_and_reason(tmp_path: Path, row: str) -> None:
    """The row before and the row after it are read."""
    good = "1,2,3,20:1,0,20160701"

    receipts, count = read(tmp_path, f"{HEADER}{good}\n{row}\n{good}\n")

    assert [2, 4] == [receipt.row for receipt in receipts]
    assert {BAD_ROWS[row]: 1} == count.bad
    assert {BAD_ROWS[row]: [3]} == count.examples


def test_bytes_that_are_no_text_and_endless_fields_are_bad_rows(tmp_path: Path) -> None:
    """Neither a broken encoding nor a field of a megabyte ends the reading."""
    content = HEADER.encode() + b"\xff\xfe,2,3,20:1,0,20160701\n" + b"x" * 1_000_000 + b"\n1,2,3,20:1,0,20160701\n"

    receipts, count = read(tmp_path, content)

    assert ["1"] == [receipt.user_id for receipt in receipts]
    assert 2 == count.bad.total()


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ("150:20", {"type": "amount_off", "amount": 2000, "threshold": 15000}),
        ("5:1", {"type": "amount_off", "amount": 100, "threshold": 500}),
        ("19.99:0.29", {"type": "amount_off", "amount": 29, "threshold": 1999}),
        ("0.9", {"type": "percent_off", "percent_off": 1000, "threshold": 0}),
        ("0.95", {"type": "percent_off", "percent_off": 500, "threshold": 0}),
        ("0.8888", {"type": "percent_off", "percent_off": 1112, "threshold": 0}),
    ],
)
def test_a_discount_becomes_exact_terms(rate: str, expected: dict[str, object]) -> None:
    """Yuan become minor units and parts of the price basis points, without a float in between."""
    assert expected == template_terms(rate)


@pytest.mark.parametrize("rate", ["0.88888", "1.1", "150-20", "150:", ":20", "1e1:1", "-5:1", "150:0", "９:1", "0.9 "])
def test_a_discount_of_another_form_is_refused(rate: str) -> None:
    """What cannot be granted exactly is not guessed at."""
    with pytest.raises(ValueError, match=r"."):
        template_terms(rate)


ROWS = """\
1,2,3,20:1,0,20160701
1,2,3,20:1,0,20160701
1,2,3,20:1,0,20160702
2,2,3,20:1,0,20160701
3,2,3,30:1,0,20160701
1,2,4,0.9,0,20160701
"""


@pytest.mark.parametrize(
    ("stock", "limit", "expected"), [(100, 1, [2, 1]), (1, 1, [1, 1]), (100, 2, [3, 1]), (100, 9, [4, 1])]
)
def test_a_plan_knows_what_must_be_issued(tmp_path: Path, stock: int, limit: int, expected: list[int]) -> None:
    """The stock, or what the users may have of what they ask for."""
    plan = plan_receipts(file_with(tmp_path, HEADER + ROWS), stock=stock, limit=limit)

    assert expected == [template.expected for template in plan.templates.values()]
    assert {"Discount_rate is not that of the coupon's first row": 1} == plan.count.bad
    assert 5 == plan.count.read


def test_the_same_file_replays_the_same_requests(tmp_path: Path) -> None:
    """Each row has a request of its own, equal rows too, and the same one in the next run."""
    path = file_with(tmp_path, HEADER + ROWS)
    template_ids = {"3": "30", "4": "40"}

    first, again = (
        [claim[:3] for claim in plan_receipts(path, stock=9, limit=9).claims(template_ids)] for _ in range(2)
    )

    assert first == again
    assert 5 == len(set(first)) == len(first)
    assert ["30", "30", "30", "30", "40"] == [claim[0] for claim in first]


def test_a_template_is_named_by_its_coupon_and_the_options(tmp_path: Path) -> None:
    """A second run finds the templates of the first; other options make others; any Coupon_id gives a valid number."""
    path = file_with(tmp_path, f"{HEADER}1,2,3,150:20,0,20160701\n1,2,券 7,0.9,0,20160701\n")

    numbers = [
        [template.template_no for template in plan_receipts(path, stock=stock, limit=1).templates.values()]
        for stock in (100, 100, 99)
    ]

    assert numbers[0] == numbers[1]
    assert not {*numbers[1]} & {*numbers[2]}
    assert "receipts-3-150-20-s100-l1" == numbers[0][0]
    assert all(len(number) <= 64 and number.isascii() and " " not in number for number in numbers[0])


def test_a_template_body_grants_what_the_receipt_says(tmp_path: Path) -> None:
    """20 off from 150 in CNY, with the stock and the limit asked for."""
    plan = plan_receipts(file_with(tmp_path, f"{HEADER}1,2,3,150:20,0,20160701\n"), stock=100, limit=2)

    body = template_body(
        plan.templates["3"], stock=100, limit=2, start="2026-01-01T00:00:00Z", end="2027-01-01T00:00:00Z"
    )

    expected = {"amount": 2000, "threshold": 15000, "currency": "CNY", "total_quantity": 100, "per_user_limit": 2}
    assert expected == {name: body[name] for name in expected}
