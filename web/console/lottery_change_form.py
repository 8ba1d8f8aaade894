"""The odds and stock of a lottery from which nobody draws, changed; who was slower than another is told so."""

from __future__ import annotations

from typing import Any

from flask import Response, url_for
from pydantic import ValidationError

from coupon_workers.access.principal import Scope
from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.lottery.lottery_change import CHANGES, LotteryChange, change_lottery
from coupon_workers.lottery.lottery_reading import LotteryAnswer, read_one
from coupon_workers.lottery.odds import WEIGHTS
from coupon_workers.templates.whole_body import errors_of
from web.console import field_reading as read
from web.console.blueprint import console
from web.console.form import Form, sent_form
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.lottery_form import rest_of, row_count, sum_problem, weights_of
from web.console.notice import done
from web.console.rendering import render
from web.console.show import number
from web.console.word import reason_of
from web.context import services
from web.lotteries_model import LotteryPatch
from web.path_id import path_id


@console.get("/lotteries/<lottery_id>/edit")
@shown_to(Scope.ADMIN)
def edit_lottery(lottery_id: str) -> Any:
    """Its name, and each prize's weight and stock."""
    lottery = _read(lottery_id)
    if lottery.status not in CHANGES:
        raise Conflict("INVALID_STATUS", "a lottery is changed while nobody draws")
    values = {"name": lottery.name, "version": str(lottery.version)}
    for place, prize in enumerate(lottery.prizes):
        values |= {f"prizes.{place}.weight": str(prize.weight), f"prizes.{place}.stock": str(prize.stock)}
    return _page(lottery, Form(values))


@console.post("/lotteries/<lottery_id>/edit")
@shown_to(Scope.ADMIN)
def save_lottery(lottery_id: str) -> Any:
    """Change it, or show what is wrong; what was typed stays."""
    lottery, form = _read(lottery_id), sent_form()
    change, refused = _asked(form), None
    if change is not None:
        refused = _change(lottery, form, change)
    if form.errors or refused:
        return _page(lottery, form, 409 if refused else 422, refused)
    return done(url_for("console.lottery", lottery_id=lottery.lottery_id), "lottery_changed")


def _read(lottery_id: str) -> LotteryAnswer:
    return read_one(services(), path_id(lottery_id, "LOTTERY_NOT_FOUND"))


def _asked(form: Form) -> LotteryChange | None:
    body: dict[str, Any] = {"name": form["name"], "version": _taken(form, "version")}
    body["prizes"] = [
        {"prize_no": row + 1} | {column: _taken(form, f"prizes.{row}.{column}") for column in ("weight", "stock")}
        for row in range(row_count(form))
    ]
    if (rest := rest_of(form)) and None not in weights_of(form):
        form.add_errors([("prizes.0.weight", sum_problem(rest))])
    try:
        patch = LotteryPatch.model_validate(body)
    except ValidationError as error:
        form.add_errors(errors_of(error))
        return None
    return None if form.errors else patch.asked()


def _taken(form: Form, name: str) -> int | None:
    """The number; nothing is no number here: what is left out would stay as it is."""
    try:
        found = read.number(form[name])
    except read.FieldError as error:
        form.add_errors([(name, str(error))])
        return None
    if found is None:
        form.add_errors([(name, "is required")])
    return found


def _change(lottery: LotteryAnswer, form: Form, change: LotteryChange) -> str | None:
    """Why it was refused as a whole, if it was; what is wrong with a field is told to the form."""
    try:
        change_lottery(services(), int(lottery.lottery_id), change)
    except InvalidInput as error:
        form.add_errors(error.errors)
    except Conflict as error:
        if error.code == "BELOW_DRAWN":
            told = gettext("%s of it are drawn already.") % number(int(str(error.evidence["drawn"])))
            form.add_errors([(f"prizes.{int(str(error.evidence['prize_no'])) - 1}.stock", told)])
        elif error.code == "NOT_ENOUGH_STOCK":
            places = [place for place, prize in enumerate(lottery.prizes) if _is_of(prize.template_id, error)]
            form.add_errors([(f"prizes.{places[0]}.stock", reason_of(error))])
        else:
            return reason_of(error)
    return None


def _is_of(template_id: str | None, error: Conflict) -> bool:
    return template_id == error.evidence["template_id"]


def _page(lottery: LotteryAnswer, form: Form, http_status: int = 200, refused: str | None = None) -> Response:
    return render(
        "edit_lottery.html",
        http_status,
        lottery=lottery,
        form=form,
        refused=refused,
        weights=weights_of(form),
        rest=rest_of(form),
        whole=WEIGHTS,
    )
