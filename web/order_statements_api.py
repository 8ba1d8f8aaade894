"""The order centre's statements over HTTP (API.md, Orders): a day's orders as it knows them, to be compared."""

from __future__ import annotations

from datetime import date
from typing import Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel

from coupon_workers.errors import AudienceFileError, StatementRowsError
from coupon_workers.finance.business_day import read_day
from coupon_workers.reconciliation.statement import take_statement
from coupon_workers.reconciliation.statement_reading import DayStatement, Statement, list_statements, read_statement
from coupon_workers.reconciliation.statement_row import FIELDS
from web.auth import require
from web.books_api import DayPath
from web.context import principal, services
from web.described_example import named
from web.idempotent import idempotent
from web.page import PageQuery, bad_cursor, page, read_cursor
from web.problem import ProblemError
from web.problem_code import refuses
from web.upload import CSV_TYPE, takes_csv, uploaded

api = APIBlueprint("order_statements", __name__, abp_tags=[Tag(name="Orders")])

ADDRESS = "/v1/order-statements/<date>"

_BODY = {
    "required": True,
    "content": {
        CSV_TYPE: {
            "schema": {"type": "string", "description": "at most 64 MiB"},
            "examples": named(",".join(FIELDS) + "\r\nO-1,u-1001,paid,8000,2000,CNY\r\n"),
        }
    },
}


class StatementPage(BaseModel):
    """The latest statement of each day, the latest day first."""

    items: list[DayStatement]
    next_cursor: str | None


@api.put(
    ADDRESS,
    summary="Give the statement of a day",
    responses={200: Statement},
    openapi_extensions={"requestBody": _BODY},
)
@require("orders")
@takes_csv
@idempotent
def put_statement(path: DayPath) -> Any:
    """A CSV with an order in each row, in place of the day's statement before; all of it or nothing. The same file
    again is answered as it stands.

    422 with a `file_code` for a file that cannot be read; with `bad_rows`, of which the first 100 are named as
    `line.<number>.<field>`, for rows that break a rule.
    """
    day = read_day(path.date)
    upload = uploaded()
    assert upload is not None and upload.file is not None
    try:
        return take_statement(services(), day, upload.file, principal().key_id).model_dump(mode="json")
    except AudienceFileError as error:
        detail = f"the file {error.errors[0][1]}"
        raise ProblemError(422, "VALIDATION_FAILED", detail, errors=error.errors, file_code=error.code) from None
    except StatementRowsError as error:
        broken = "1 row breaks a rule" if error.count == 1 else f"{error.count} rows break a rule"
        detail = f"{broken}; nothing was taken"
        raise ProblemError(422, "VALIDATION_FAILED", detail, errors=error.errors, bad_rows=error.count) from None


@api.get("/v1/order-statements", summary="List statements", responses={200: StatementPage})
@require("orders", "admin")
def get_statements(query: PageQuery) -> Any:
    """The latest of each day, the latest day first."""
    position = read_cursor(query.cursor, str)
    before = _day(position[0]) if position else date.max
    found = list_statements(services(), limit=query.limit + 1, before=before)
    return page(found, query.limit, lambda item: item.model_dump(mode="json"), lambda item: [item.date])


@api.get(ADDRESS, summary="The statement of a day", responses={200: Statement})
@require("orders", "admin")
@refuses("STATEMENT_NOT_FOUND")
def get_statement(path: DayPath) -> Any:
    """Which one is in force, and those before it that are kept. 404 `STATEMENT_NOT_FOUND`."""
    return read_statement(services(), read_day(path.date)).model_dump(mode="json")


def _day(shown: str) -> date:
    try:
        return date.fromisoformat(shown)
    except ValueError:
        raise bad_cursor() from None
