"""The order centre's statements over HTTP (API.md, Orders): taken whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.access.api_key import create_key
from coupon_workers.access.signature import sign
from coupon_workers.runtime.services import Services
from tests.support.http_caller import Caller
from tests.support.http_reply import Reply
from tests.support.http_shop import Shop
from tests.support.statement import HEADER, said
from web.app import create_app

DAY = "2026-11-11"
NOW = datetime.fromisoformat("2026-11-12T01:00+08:00")
GOOD = ("o1,ann,paid,13000,2000,CNY", "o2,bob,closed,0,0,JPY")


@pytest.fixture
def centre(services: Services) -> Caller:
    """The order centre, an hour after the day."""
    return Shop(replace(services, clock=lambda: NOW)).caller("orders")


def _put(centre: Caller, content: bytes, day: str = DAY, kind: str = "text/csv", **headers: str) -> Reply:
    return centre.ask("PUT", f"/v1/order-statements/{day}", content, Content_Type=kind, **headers)


def _stored(services: Services) -> list[tuple[Any, ...]]:
    wanted = "revision, line_no, order_no, user_id, status, paid_minor, discount_minor, currency"
    with services.engine.connect() as connection:
        found = connection.execute(text(f"SELECT {wanted} FROM order_statement_row ORDER BY revision, line_no"))
        return [tuple(row) for row in found]


def test_a_statement_is_taken_read_and_replaced(centre: Caller, services: Services) -> None:
    """The next file is the next revision; the same file again is answered as it stands."""
    first = _put(centre, said(*GOOD)).ok()
    again = _put(centre, said(*GOOD)).ok()
    second = _put(centre, said(GOOD[0])).ok()
    read = centre.ask("GET", f"/v1/order-statements/{DAY}").ok()
    listed = centre.ask("GET", "/v1/order-statements").ok()

    assert (1, 2, DAY, "2026-11-11T17:00:00Z") == (
        first["revision"], first["rows"], first["date"], first["received_at"],
    )  # fmt: skip
    assert first == again
    assert (2, 1, [1, 2]) == (second["revision"], second["rows"], [each["revision"] for each in second["revisions"]])
    assert second == read
    assert [{name: value for name, value in second.items() if name != "revisions"}] == listed["items"]
    assert [(1, 2, "o1", "ann", "paid", 13_000, 2_000, "CNY"), (1, 3, "o2", "bob", "closed", 0, 0, "JPY")] == (
        _stored(services)[:2]
    )


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + said(*GOOD),
        said(*GOOD).replace(b"\n", b"\r\n"),
        said(*GOOD).rstrip(),
        said(GOOD[0], "", GOOD[1]),
        said('"o1",ann,"paid",13000,2000,CNY', ' o2 ,"bob",closed,0,0,JPY '),
        said("CNY,paid,2000,13000,ann,o1", "JPY,closed,0,0,bob,o2", header=",".join(HEADER.split(",")[::-1])).replace(
            b"paid,2000,13000,ann,o1", b"2000,13000,paid,ann,o1"
        ).replace(b"closed,0,0,bob,o2", b"0,0,closed,bob,o2"),
        said(*GOOD, header=HEADER.upper()),
    ],
    ids=["mark", "crlf", "no newline at the end", "blank line", "quoted", "columns in another order", "upper case"],
)  # fmt: skip
def test_what_spreadsheets_make_of_a_file_is_read(centre: Caller, services: Services, content: bytes) -> None:
    """The same two orders."""
    assert 2 == _put(centre, content).ok()["rows"]
    assert {("o1", "ann", "paid", 13_000, 2_000, "CNY"), ("o2", "bob", "closed", 0, 0, "JPY")} == {
        row[2:] for row in _stored(services)
    }


def test_a_day_without_orders_has_a_header(centre: Caller) -> None:
    """And no row."""
    assert 0 == _put(centre, said()).ok()["rows"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "EMPTY_FILE"),
        (b"\n \n", "EMPTY_FILE"),
        (b"o1,ann,paid,13000,2000,CNY\n", "HEADER_MISSING"),
        (said(header="order_no,user_id,status,paid_amount,discount_amount"), "COLUMN_MISSING"),
        (said(header=HEADER + ",order_no"), "COLUMN_AMBIGUOUS"),
        (said(header=HEADER + ",shop"), "COLUMN_UNKNOWN"),
        (said(header=HEADER.replace(",", ";")), "HEADER_MISSING"),
        (bytes(range(256)) * 9, "BINARY"),
        (b"PK\x03\x04\x14\x00\x00\x00" + b"\x00" * 64, "ENCODING"),
        (said('o1,"ann,paid,13000,2000,CNY'), "TRUNCATED"),
        (said() + b"o1,\xff\xfe,paid,1,1,CNY\n", "ENCODING"),
        ((HEADER + "\n").encode("utf-16"), "ENCODING"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(centre: Caller, services: Services, content: bytes, code: str) -> None:
    """With a word on the file; nothing is taken."""
    problem = _put(centre, content).problem(422, "VALIDATION_FAILED")

    assert (code, ["file"]) == (problem["file_code"], [error["field"] for error in problem["errors"]])
    assert [] == _stored(services)
    centre.ask("GET", f"/v1/order-statements/{DAY}").problem(404, "STATEMENT_NOT_FOUND")


AMOUNTS = ("-1", "1.5", "1.0", "", "1e3", str(2**53), "9" * 40, "0x10", "1 000", "+1", "١")


@pytest.mark.parametrize(
    ("row", "fields"),
    [(f"o1,ann,paid,{amount},0,CNY", ["paid_amount"]) for amount in AMOUNTS]
    + [(f"o1,ann,paid,0,{amount},CNY", ["discount_amount"]) for amount in AMOUNTS]
    + [(f"o1,ann,{status},0,0,CNY", ["status"]) for status in ("PAID", "", "locked", "refund")]
    + [(f"o1,ann,paid,0,0,{code}", ["currency"]) for code in ("cny", "", "RMB", "XXX")]
    + [(f"o1,{user},paid,0,0,CNY", ["user_id"]) for user in ("", "a b", "x" * 65, "4.68769E+17")]
    + [(f"{order},ann,paid,0,0,CNY", ["order_no"]) for order in ("", "a/b", "x" * 65, "4.68769E+17", '"a\nb"')]
    + [("o1,ann,paid,0,0", [""]), ("o1,ann,paid,0,0,CNY,x", [""]), ("x", [""]), ("o1,ann,paid,1,000,0,CNY", [""])]
    + [(",,,,,x", ["currency", "discount_amount", "order_no", "paid_amount", "status", "user_id"])],
)
def test_a_row_that_breaks_a_rule_is_named(centre: Caller, services: Services, row: str, fields: list[str]) -> None:
    """By its line and field, and the good rows beside it are not taken."""
    refused = _put(centre, said(GOOD[1], row, "o3,cid,paid,1,0,CNY"))

    assert [f"line.3.{field}".rstrip(".") for field in fields] == refused.bad_fields()
    assert (1, "1 row breaks a rule; nothing was taken") == (refused.json["bad_rows"], refused.json["detail"])
    assert [] == _stored(services)


def test_an_order_that_is_given_twice_is_refused(centre: Caller) -> None:
    """At each line after the first, with the first; another user's equal number is another order."""
    _put(centre, said("o1,ann,paid,1,0,CNY", "o1,bob,paid,1,0,CNY")).ok()

    problem = _put(centre, said(GOOD[0], *GOOD, '"o1","ann",closed,1,0,CNY')).problem(422, "VALIDATION_FAILED")

    assert {"the order is in line 2 already"} == {error["message"] for error in problem["errors"]}
    assert ["line.3.order_no", "line.5.order_no"] == [error["field"] for error in problem["errors"]]


def test_a_hundred_rows_are_named_and_all_are_counted(centre: Caller) -> None:
    """In the order of the file, whatever is wrong with each."""
    rows = [f"o{number},ann,paid,{'x' if number % 2 else 1},0,CNY" for number in range(300)]

    problem = _put(centre, said(*rows, *rows[:50:2])).problem(422, "VALIDATION_FAILED")

    assert (175, "175 rows break a rule; nothing was taken") == (problem["bad_rows"], problem["detail"])
    assert [f"line.{number}.paid_amount" for number in range(3, 203, 2)] == [e["field"] for e in problem["errors"]]


def test_lines_are_those_of_an_editor(centre: Caller) -> None:
    """A quoted field may have several; the order number of such a row is none."""
    problem = _put(centre, said('"o\n1",ann,paid,1,0,CNY', "o2,ann,x,1,0,CNY")).problem(422, "VALIDATION_FAILED")

    assert ["line.2.order_no", "line.4.status"] == [error["field"] for error in problem["errors"]]


@pytest.mark.parametrize("day", ["2026-11-13", "2027-01-01", "2999-12-31"])
def test_a_day_to_come_has_no_statement(centre: Caller, day: str) -> None:
    """It has begun in no time zone."""
    assert ["date"] == _put(centre, said(), day).bad_fields()


@pytest.mark.parametrize("day", ["2026-13-01", "20261111", "x", "1999-12-31", "2026-11-11T00:00:00Z"])
def test_what_is_no_day_is_named(centre: Caller, day: str) -> None:
    """For writing and for reading."""
    assert ["date"] == _put(centre, said(), day).bad_fields()
    assert ["date"] == centre.ask("GET", f"/v1/order-statements/{day}").bad_fields()


def test_other_bodies_are_refused(centre: Caller) -> None:
    """A statement is a CSV, of 64 MiB at most."""
    _put(centre, b"{}", kind="application/json").problem(415, "UNSUPPORTED_MEDIA_TYPE")
    _put(centre, said(), kind="multipart/form-data; boundary=x").problem(415, "UNSUPPORTED_MEDIA_TYPE")
    _put(centre, b"x" * (64 * 1024 * 1024 + 1)).problem(413, "BODY_TOO_LARGE")
    assert 200 == _put(centre, said(), kind="text/csv; charset=utf-8").status


def test_a_key_replays_the_answer_and_belongs_to_its_file(centre: Caller) -> None:
    """As with any write."""
    first = _put(centre, said(*GOOD), Idempotency_Key="k")
    _put(centre, said(GOOD[0])).ok()
    again = _put(centre, said(*GOOD), Idempotency_Key="k")

    assert first.ok() == again.ok()
    assert "true" == again.headers["idempotency-replayed"]
    _put(centre, said(GOOD[0]), Idempotency_Key="k").problem(422, "IDEMPOTENCY_MISMATCH")


def test_a_signed_statement_may_be_large(services: Services) -> None:
    """More than other bodies: it is hashed on its way into a file. A changed byte is refused before it is read."""
    services = replace(services, clock=lambda: NOW)
    made = create_key(services.engine, name="signed", scopes=["orders"], signed=True)
    key_hash, address = sha256(made.key.encode()).hexdigest(), f"/v1/order-statements/{DAY}"
    content = said(*[f"order-{number},user-{number},paid,13000,2000,CNY" for number in range(30_000)])
    client = create_app(services).test_client()

    answers = []
    for number, sent in enumerate((content, content[:-2] + b"X\n")):
        signed_at, nonce = str(int(NOW.timestamp())), f"nonce-{number:016d}"
        signature = sign(key_hash, method="PUT", target=address, time=signed_at, nonce=nonce, body=content)
        headers = {
            "Authorization": f"Bearer {made.key}",
            "X-Signature-Time": signed_at,
            "X-Signature-Nonce": nonce,
            "X-Signature": signature,
        }
        answers.append(client.put(address, data=sent, content_type="text/csv", headers=headers).status_code)

    assert len(content) > 1024 * 1024
    assert ([200, 401], 30_000) == (answers, len(_stored(services)))


def test_days_are_listed_in_pages(centre: Caller) -> None:
    """The latest first."""
    for day in ("2026-11-09", "2026-11-11", "2026-11-10"):
        _put(centre, said(), day).ok()

    first = centre.ask("GET", "/v1/order-statements?limit=2").ok()
    rest = centre.ask("GET", f"/v1/order-statements?limit=2&cursor={first['next_cursor']}").ok()

    assert ["2026-11-11", "2026-11-10", "2026-11-09"] == [item["date"] for item in first["items"] + rest["items"]]
    assert rest["next_cursor"] is None
    assert ["cursor"] == centre.ask("GET", "/v1/order-statements?cursor=WyJ4Il0=").bad_fields()


def test_statements_are_the_order_centres(services: Services) -> None:
    """An administrator may read them; nobody else may do either."""
    shop = Shop(replace(services, clock=lambda: NOW))
    address = f"/v1/order-statements/{DAY}"

    admin = shop.caller("admin")
    assert (403, 404, 200) == (
        _put(admin, said()).status,
        admin.ask("GET", address).status,
        admin.ask("GET", "/v1/order-statements").status,
    )
    for caller in (shop.caller("storefront", "ops"), shop.caller()):
        assert _put(caller, said()).status in (401, 403)
        assert caller.ask("GET", address).status in (401, 403)
