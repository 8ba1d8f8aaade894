"""Batches that cannot be: a precise 4xx for each, and nothing written or sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from coupon_workers.campaigns.new_batch import PART_BYTES
from tests.support.batch_desk import BOUNDARY, BatchDesk, Part, form, users_csv
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from web.upload_form import MOST_FILE, MOST_UPLOAD

EXCEL = b"PK\x03\x04\x14\x00\x06\x00"


@pytest.fixture
def desk(lasting_shop: Shop) -> Iterator[BatchDesk]:
    """A desk that leaves no batch behind."""
    desk = BatchDesk(lasting_shop.desk.admin)
    yield desk
    assert [] == desk.page()["items"]


@pytest.fixture(scope="module")
def template_id(lasting_shop: Shop) -> str:
    """A template that is active until tomorrow."""
    return lasting_shop.desk.open()


@pytest.mark.parametrize(
    ("file", "name", "code"),
    [
        (b"", "a.csv", "EMPTY_FILE"),
        (b" \n\n", "a.csv", "EMPTY_FILE"),
        (b"u1\nu2\n", "a.csv", "COLUMN_MISSING"),
        (b"phone,city\n1,2\n", "a.csv", "COLUMN_MISSING"),
        (b"user_id,user_id\n1,2\n", "a.csv", "COLUMN_AMBIGUOUS"),
        (b"user_id\n", "a.csv", "NO_ROWS"),
        (b"user_id\n\n\n", "a.csv", "NO_ROWS"),
        (EXCEL, "a.xlsx", "BINARY"),
        (b"\x00\x01\x02\x03" * 100, "a.csv", "BINARY"),
        (b"user_id\n" + b"u\x00" + b"x" * 100, "a.csv", "BINARY"),
        ("user_id\nu1\n".encode("utf-16"), "a.csv", "ENCODING"),
        (b"user_id\nu1\n", "a.parquet", "NOT_PARQUET"),
        (b"[]", "a.jsonl", "NOT_JSONL"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_why(
    desk: BatchDesk, template_id: str, file: bytes, name: str, code: str
) -> None:
    """At the field, with a code for programs, before anything is kept."""
    problem = desk.post(template_id, file, name=name).problem(422, "VALIDATION_FAILED")

    assert code == problem["file_code"]
    assert ["file"] == [error["field"] for error in problem["errors"]]


@pytest.mark.parametrize(
    ("fields", "bad"),
    [
        ({"name": ""}, ["name"]),
        ({"name": "   "}, ["name"]),
        ({"name": "x" * 65}, ["name"]),
        ({"name": "a\x00b"}, ["name"]),
        ({"template_id": "none"}, ["template_id"]),
        ({"template_id": "0"}, ["template_id"]),
        ({"policy": "some"}, ["policy"]),
        ({"policy": ""}, ["policy"]),
        ({"start_at": "2030-01-01T00:00:00"}, ["start_at"]),
        ({"start_at": "tomorrow"}, ["start_at"]),
        ({"colour": "red"}, ["colour"]),
        ({"tags": "vip"}, ["tags"]),
        ({"name": "", "colour": "red", "policy": "some"}, ["colour", "name", "policy"]),
    ],
)
def test_fields_of_a_form_that_break_a_rule_are_all_named(
    desk: BatchDesk, template_id: str, fields: dict[str, str], bad: list[str]
) -> None:
    """Unknown ones too, and tags beside a file."""
    assert bad == desk.post(template_id, users_csv("u1"), fields).bad_fields()


def test_a_start_lies_before_the_end_of_the_template(desk: BatchDesk, template_id: str) -> None:
    """The very instant of the end is too late."""
    assert ["start_at"] == desk.post(template_id, users_csv("u1"), {"start_at": from_now(days=2)}).bad_fields()


@pytest.mark.parametrize(
    ("parts", "bad"),
    [
        ([], ["file", "name", "template_id"]),
        ([("name", None, b"n"), ("name", None, b"n")], ["file", "name", "template_id"]),
        ([("file", None, b"user_id\nu1\n")], ["file", "name", "template_id"]),
        ([("file", "a.csv", b"user_id\nu1\n"), ("file", "b.csv", b"user_id\nu1\n")], ["file", "name", "template_id"]),
        ([("audience", "a.csv", b"user_id\nu1\n")], ["audience", "file", "name", "template_id"]),
        ([("name", None, b"\xff"), ("file", "a.csv", b"user_id\nu1\n")], ["name", "template_id"]),
        ([("tags", None, b"vip")], ["file", "name", "tags", "template_id"]),
    ],
)
def test_a_form_is_read_strictly(desk: BatchDesk, parts: list[Part], bad: list[str]) -> None:
    """Fields given twice, a file that is none or has another name, text that is no UTF-8."""
    assert bad == desk.send(form(parts)).bad_fields()


@pytest.mark.parametrize(
    ("body", "boundary"),
    [
        (b"user_id\nu1\n", BOUNDARY),
        (form([("name", None, b"n")])[:-10], BOUNDARY),
        (form([("file", "a.csv", b"user_id\n")])[:-20], BOUNDARY),
        (f"--{BOUNDARY}\r\nContent-Type: text/csv\r\n\r\nx\r\n--{BOUNDARY}--\r\n".encode(), BOUNDARY),
        (form([("name", None, b"n")]), ""),
        (form([("name", None, b"n")]), "x" * 71),
    ],
)
def test_a_body_that_is_no_whole_form_is_malformed(desk: BatchDesk, body: bytes, boundary: str) -> None:
    """400, however much of it was fine."""
    desk.send(body, boundary).problem(400, "MALFORMED_FORM")


@pytest.mark.parametrize(
    ("body", "bad"),
    [
        ({}, ["name", "tags", "template_id"]),
        ({"tags": ""}, ["name", "tags", "template_id"]),
        ({"tags": 1}, ["name", "tags", "template_id"]),
        ({"tags": "vip", "file": "user_id"}, ["file", "name", "template_id"]),
        ({"tags": "vip", "name": "n", "template_id": 2**60}, ["template_id"]),
        ({"tags": "vip", "name": "n", "template_id": True}, ["template_id"]),
        ({"tags": "vip", "name": "n", "template_id": "1", "start_at": "2030-01-01T00:00:00"}, ["start_at"]),
    ],
)
def test_fields_of_json_that_break_a_rule_are_all_named(desk: BatchDesk, body: dict[str, Any], bad: list[str]) -> None:
    """Neither file nor tags, or both, among them."""
    assert bad == desk.admin.ask("POST", "/v1/batches", body).bad_fields()


@pytest.mark.parametrize(
    ("tags", "position"), [("vip and", 8), ("vip churned", 5), ("(vip", 5), ("not churned", 1), ("vip & new", 5)]
)
def test_an_expression_that_cannot_be_read_is_told_where(
    desk: BatchDesk, template_id: str, tags: str, position: int
) -> None:
    """By the number of the character."""
    problem = desk.post_tags(template_id, tags).problem(422, "VALIDATION_FAILED")

    assert ["tags"] == [error["field"] for error in problem["errors"]]
    assert problem["errors"][0]["message"].endswith(f"at character {position}")


def test_another_content_type_is_not_taken(desk: BatchDesk) -> None:
    """A form of text alone, or the bare file."""
    for content_type in ("text/csv", "application/x-www-form-urlencoded"):
        reply = desk.admin.ask("POST", "/v1/batches", users_csv("u1"), Content_Type=content_type)
        reply.problem(415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_template_that_cannot_be_given_away_is_refused(desk: BatchDesk, lasting_shop: Shop) -> None:
    """Unknown, a draft, paused, ended, or not begun: with its status."""
    templates = lasting_shop.desk
    paused = templates.open()
    templates.act(paused, "pause").ok()
    coming = templates.open(claim_start=from_now(hours=1))
    cases = ((templates.draft(), "draft"), (paused, "paused"), (coming, "scheduled"))

    unknown = desk.post("12345", users_csv("u1"))
    refused = [desk.post(template_id, users_csv("u1")) for template_id, _ in cases]
    too_early = desk.post(coming, users_csv("u1"), {"start_at": from_now(minutes=1)})

    unknown.problem(404, "TEMPLATE_NOT_FOUND")
    told = [reply.problem(409, "TEMPLATE_NOT_ACTIVE")["current_status"] for reply in refused]
    assert [status for _, status in cases] == told
    assert ["start_at"] == too_early.bad_fields()


def test_a_batch_that_is_not_there_cannot_be_asked_for(desk: BatchDesk) -> None:
    """Whatever is asked, and whatever the number looks like."""
    for number in ("1", "x", str(2**63)):
        for method, path in (("GET", ""), ("GET", "/failures.csv"), *(("POST", f"/{act}") for act in ACTIONS)):
            desk.admin.ask(method, f"/v1/batches/{number}{path}").problem(404, "BATCH_NOT_FOUND")


ACTIONS = ("approve", "pause", "resume", "cancel")


@pytest.mark.parametrize("query", ["?status=open", "?template_id=x", "?limit=0", "?cursor=x", "?colour=red"])
def test_a_bad_query_of_the_list_is_named(desk: BatchDesk, query: str) -> None:
    """422."""
    name = query[1:].partition("=")[0]

    assert [name] == desk.admin.ask("GET", f"/v1/batches{query}").bad_fields()


@pytest.mark.parametrize("scope", ["storefront", "orders", "ops"])
def test_batches_are_for_operators(lasting_shop: Shop, scope: str) -> None:
    """403 with any other scope, before the form is looked at."""
    caller = BatchDesk(lasting_shop.caller(scope))

    caller.send(b"nonsense").problem(403, "FORBIDDEN")
    caller.failures("1").problem(403, "FORBIDDEN")


class Zeros:
    """A body without end; ``taken`` bytes of it were read."""

    def __init__(self, head: bytes) -> None:
        self._head, self.taken, self.most = head, 0, 0

    def read(self, size: int = -1) -> bytes:
        """The head, then zeros."""
        head, self._head = self._head[:size], self._head[size:]
        self.taken, self.most = self.taken + size, max(self.most, size)
        return head + b"0" * (size - len(head))


@pytest.mark.parametrize(
    ("environ", "most_read"),
    [
        ({"CONTENT_LENGTH": str(MOST_UPLOAD + 1)}, 0),
        ({"CONTENT_LENGTH": str(MOST_FILE + 2_000)}, MOST_UPLOAD),
        ({"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked"}, MOST_UPLOAD),
    ],
)
def test_a_file_over_64_mebibytes_is_too_large(
    lasting_shop: Shop, desk: BatchDesk, environ: dict[str, str], most_read: int
) -> None:
    """413, at once where the body tells its length; and it is never in memory as a whole."""
    body = Zeros(form([("file", "a.csv", b"user_id\n")])[: -len(BOUNDARY) - 8])

    answer = lasting_shop.app.test_client().post(
        "/v1/batches",
        content_type=f"multipart/form-data; boundary={BOUNDARY}",
        headers=desk.admin._headers,
        environ_overrides={"wsgi.input": body, **environ},
    )

    assert (413, "BODY_TOO_LARGE") == (answer.status_code, (answer.json or {})["code"]), answer.data
    assert body.taken <= most_read
    assert body.most <= PART_BYTES


def test_the_fields_beside_a_file_are_bounded(desk: BatchDesk) -> None:
    """By the size of any other body, and in number."""
    desk.send(form([("name", None, b"n" * (1024 * 1024 + 1))])).problem(413, "BODY_TOO_LARGE")
    desk.send(form([(f"f{number}", None, b"") for number in range(40)])).problem(413, "BODY_TOO_LARGE")


def test_json_is_bounded_as_everywhere(desk: BatchDesk) -> None:
    """Only a form may be larger than a mebibyte."""
    desk.admin.ask("POST", "/v1/batches", b" " * (1024 * 1024 + 1)).problem(413, "BODY_TOO_LARGE")
