"""A new lottery: prizes and odds in rows, and beside them what a user will see."""

from __future__ import annotations

from typing import Any

from flask import Response, request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.lottery.new_lottery import NewLottery, create_lottery
from coupon_workers.lottery.odds import WEIGHTS
from coupon_workers.templates.field_type import known_timezones
from web.console.batch_form import open_templates
from web.console.blueprint import console
from web.console.form import Form, allotted_id, taken_id
from web.console.guard import shown_to
from web.console.lottery_form import new_form, read_lottery_form, rest_of, row_count, sent_lottery, weights_of
from web.console.notice import done
from web.console.rendering import render
from web.console.word import reason_of
from web.context import principal, services
from web.wheel import wheel

LOOK, ROW = "look", "row"
"""The buttons that only show what the form would make, and give it a row more."""


@console.get("/lotteries/new")
@shown_to(Scope.ADMIN)
def new_lottery() -> Any:
    """The empty form."""
    return _page(new_form(services().clock()), allotted_id())


@console.post("/lotteries/new")
@shown_to(Scope.ADMIN)
def make_lottery() -> Any:
    """Make it, or show what is wrong with it; or only what it would be."""
    asked_for = request.form.get("do", "")
    lottery_id, form = taken_id(), sent_lottery(another=asked_for == ROW)
    if asked_for in (LOOK, ROW):
        return _page(form, request.form["allotted"])
    body = read_lottery_form(form)
    if body is not None:
        _make(form, body.asked(lottery_id))
    if form.errors:
        return _page(form, request.form["allotted"], 422)
    return done(url_for("console.lottery", lottery_id=lottery_id), "lottery_made")


@console.post("/lotteries/preview")
@shown_to(Scope.ADMIN)
def preview_lottery() -> Response:
    """The preview alone, for the form's script: it writes nothing."""
    form = sent_lottery()
    return render("lottery_preview.html", form=form, seen=_seen(form))


def _make(form: Form, lottery: NewLottery) -> None:
    try:
        create_lottery(services(), lottery, principal().key_id)
    except InvalidInput as error:
        form.add_errors(error.errors)
    except (Conflict, NotFound) as error:
        form.add_errors([(_row_of(form, error), reason_of(error))])


def _row_of(form: Form, error: Conflict | NotFound) -> str:
    """The cell at which a refusal is told: the first prize of the template that it names."""
    of_template = getattr(error, "evidence", {}).get("template_id")
    cell = "stock" if error.code == "NOT_ENOUGH_STOCK" else "template_id"
    rows = (row for row in range(row_count(form)) if form[f"prizes.{row}.template_id"] == of_template)
    return f"prizes.{next(rows, 0)}.{cell}"


def _seen(form: Form) -> dict[str, Any]:
    """What a user will see of what is filled in: names and odds, in order, and the wheel."""
    weights = weights_of(form)
    named = [(form[f"prizes.{row}.name"], weight) for row, weight in enumerate(weights) if weight is not None]
    rest = rest_of(form)
    if form["rest"] and rest > 0:
        named.append((form["rest_name"], rest))
    return {"prizes": named, "rest": rest, "wheel": wheel(len(named)), "is_whole": sum(w for _, w in named) == WEIGHTS}


def _page(form: Form, allotted: str, http_status: int = 200) -> Response:
    return render(
        "new_lottery.html",
        http_status,
        form=form,
        allotted=allotted,
        rows=row_count(form),
        weights=weights_of(form),
        rest=rest_of(form),
        whole=WEIGHTS,
        seen=_seen(form),
        templates=open_templates(),
        timezones=sorted(known_timezones()),
    )
