"""Closed days: what each cost, one with its templates, closing one and opening it again."""

from __future__ import annotations

from typing import Any

from flask import Response, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.finance import daily_close as closing
from coupon_workers.finance.business_day import read_day
from coupon_workers.finance.close_csv import close_csv
from coupon_workers.finance.close_list import read_closes
from coupon_workers.finance.close_reading import read_close
from web.books_api import day_before
from web.console.blueprint import console
from web.console.form import Form, reason, sent_form
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.listing import PAGE_SIZE, Listing, cursor_of
from web.console.notice import done
from web.console.rendering import render
from web.console.word import reason_of
from web.context import principal, services


@console.get("/daily-closes")
@shown_to(Scope.ADMIN)
def daily_closes() -> Any:
    """The days, the latest first."""
    return _page(Form({}))


@console.post("/daily-closes")
@shown_to(Scope.ADMIN)
def close_day() -> Any:
    """Freeze a day that is over."""
    form = sent_form()
    try:
        closed = closing.close_day(services(), read_day(form["date"]), principal().key_id)
    except InvalidInput as error:
        form.add_errors(error.errors)
    except Conflict as error:
        form.add_errors([("date", reason_of(error))])
    else:
        return done(url_for("console.daily_close", date=closed.date), "day_closed")
    return _page(form, 422)


@console.get("/daily-closes/<date>")
@shown_to(Scope.ADMIN)
def daily_close(date: str) -> Any:
    """What each template's coupons did and cost."""
    return render("daily_close.html", close=read_close(services(), read_day(date)))


@console.get("/daily-closes/<date>.csv")
@shown_to(Scope.ADMIN)
def daily_close_file(date: str) -> Response:
    """The same for a spreadsheet, in minor units."""
    close = read_close(services(), read_day(date))
    answer = Response(close_csv(close), content_type="text/csv; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="close-{close.date}-{close.revision}.csv"'
    return answer


@console.post("/daily-closes/<date>/reopen")
@shown_to(Scope.ADMIN)
def reopen_day(date: str) -> Any:
    """Open it again, with a reason."""
    day, why = read_day(date), reason()
    if why is None:
        raise InvalidInput([("reason", gettext("say why"))])
    closing.reopen_day(services(), day, principal().key_id, why)
    return done(url_for("console.daily_close", date=day.isoformat()), "day_reopened")


def _page(form: Form, http_status: int = 200) -> Any:
    found = read_closes(services(), limit=PAGE_SIZE + 1, before=day_before(cursor_of(str)))
    return render("daily_closes.html", http_status, listing=Listing(found, lambda day: [day.date]), form=form)
