"""The order centre's statements: the latest of each day, one with its comparison, giving one in place of another."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

from flask import g, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.errors import AudienceFileError, Conflict, InvalidInput, NotFound, StatementRowsError
from coupon_workers.field_message import REQUIRED
from coupon_workers.finance.business_day import read_day
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.run_reading import RunAnswer, read_run, read_runs
from coupon_workers.reconciliation.statement import NAMED_ROWS, take_statement
from coupon_workers.reconciliation.statement_reading import Statement, list_statements, read_statement
from coupon_workers.reconciliation.statement_row import FIELDS
from web.books_api import day_before
from web.console.batch_word import FILE_WORDS, STATEMENT_FILE_WORDS
from web.console.blueprint import console
from web.console.field_word import field_word
from web.console.form import Form
from web.console.guard import shown_to
from web.console.language import N_, gettext
from web.console.listing import PAGE_SIZE, Listing, cursor_of
from web.console.notice import done
from web.console.reconciliation_desk import moving_of
from web.console.rendering import render
from web.context import principal, services
from web.problem import ProblemError
from web.upload import FORM_TYPE, takes_upload, uploaded
from web.upload_form import MOST_FILE, Upload

RUNS_LOOKED_AT = 200
"""Of orders there is a run a day: older days' comparisons are among the reconciliations."""

CHOOSE_AGAIN = N_("Choose the file again, and say that it replaces the one that is there.")


class BadRow(NamedTuple):
    """A field of a line, from 1, and what is wrong with it."""

    line: str
    field: str
    message: str


@console.get("/order-statements")
@shown_to(Scope.ADMIN, Scope.ORDERS)
def order_statements() -> Any:
    """The latest day first, with the form for those who may give one."""
    return _page(Form({}))


@console.post("/order-statements")
@shown_to(Scope.ORDERS)
@takes_upload
def give_statement() -> Any:
    """Take it, all or nothing; over one that is there only when that was said."""
    upload = uploaded()
    if upload is None:
        raise ProblemError(415, "UNSUPPORTED_MEDIA_TYPE", f"the body must be {FORM_TYPE}")
    form = Form({name: value.strip() for name, value in upload.fields.items()})
    bad: list[BadRow] = []
    count = 0
    try:
        day = _take(form, upload)
    except StatementRowsError as error:
        bad, count = [_bad_row(*each) for each in error.errors], error.count
    except AudienceFileError as error:
        words = FILE_WORDS | STATEMENT_FILE_WORDS
        form.add_errors([("file", words.get(error.code, error.errors[0][1]))])
    except InvalidInput as error:
        form.add_errors(error.errors)
    except Conflict as error:
        there = _there(form["date"])
        form.add_errors([("file", CHOOSE_AGAIN)])
        return _page(form, 409, there=there, over=int(str(error.evidence["revision"])))
    else:
        return done(url_for("console.order_statement", date=day.isoformat()), "statement_taken")
    return _page(form, 422, bad=bad, count=count)


@console.get("/order-statements/<date>")
@shown_to(Scope.ADMIN, Scope.ORDERS)
def order_statement(date: str) -> Any:
    """What came, when and from whom; what came of comparing it."""
    found = read_statement(services(), read_day(date))
    run = _run_of(found)
    moving = moving_of(run) if run else None
    return render("order_statement.html", statement=found, run=run, moving=moving, is_admin=_has(Scope.ADMIN))


@console.get("/data/order-statements/<date>")
@shown_to(Scope.ADMIN, Scope.ORDERS)
def order_statement_data(date: str) -> dict[str, Any]:
    """What of its comparison moves."""
    run = _run_of(read_statement(services(), read_day(date)))
    if run is None:
        raise NotFound("RECONCILIATION_NOT_FOUND", "it was not compared")
    return moving_of(run)


def _take(form: Form, upload: Upload) -> date:
    """Raises ``InvalidInput`` and those below it; ``Conflict``."""
    errors = list(upload.errors)
    if not upload.file_name:
        errors.append(("file", REQUIRED))
    try:
        day = read_day(form["date"])
    except InvalidInput as error:
        raise InvalidInput([*error.errors, *errors]) from None
    if errors or upload.file is None:
        raise InvalidInput(errors)
    over = form["over"] if form["replace"] else "0"
    number = int(over) if over.isdecimal() and over.isascii() and len(over) < 10 else 0
    take_statement(services(), day, upload.file, principal().key_id, over=number)
    return day


def _bad_row(place: str, message: str) -> BadRow:
    _, line, field = (*place.split("."), "")[:3]
    return BadRow(line, field, field_word(message))


def _there(day: str) -> Statement | None:
    try:
        return read_statement(services(), read_day(day))
    except NotFound:
        return None


def _run_of(statement: Statement) -> RunAnswer | None:
    """The latest comparison of the day that has seen this statement."""
    for run in read_runs(services(), limit=RUNS_LOOKED_AT, kind=ReconKind.ORDERS):
        if run.date == statement.date:
            return read_run(services(), int(run.run_id))
    return None


def _has(scope: Scope) -> bool:
    return scope in g.visitor.principal.scopes


def _page(
    form: Form,
    http_status: int = 200,
    *,
    there: Statement | None = None,
    over: int = 0,
    bad: list[BadRow] | None = None,
    count: int = 0,
) -> Any:
    found = list_statements(services(), limit=PAGE_SIZE + 1, before=day_before(cursor_of(str)))
    return render(
        "order_statements.html",
        http_status,
        listing=Listing(found, lambda day: [day.date]),
        form=form,
        may_give=_has(Scope.ORDERS),
        there=there,
        over=over,
        bad=bad or [],
        count=count,
        named=NAMED_ROWS,
        fields=FIELDS,
        most_bytes=MOST_FILE,
        problem=gettext("Nothing was taken.") if bad else None,
    )
