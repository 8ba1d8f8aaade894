"""The form of a lottery: its prizes are rows, read into the body that the API takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from flask import request
from pydantic import ValidationError

from coupon_workers.lottery.odds import WEIGHTS
from coupon_workers.templates.field_type import MAX_QUANTITY
from coupon_workers.templates.whole_body import errors_of
from web.console import field_reading as read
from web.console.form import Form
from web.console.language import gettext
from web.console.show import number, told_zone
from web.lotteries_model import MOST_PRIZES, LotteryBody

COLUMNS = ("name", "template_id", "weight", "stock")
FIRST_ROWS = 3

_CELL = re.compile(r"prizes\.([0-9]{1,4})\.(name|template_id|weight|stock)", re.ASCII)


def new_form(now: datetime) -> Form:
    """From the next whole hour on, for a day; what no prize takes wins nothing."""
    zone = told_zone() or "Asia/Shanghai"
    start = now.astimezone(ZoneInfo(zone)).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    values = {
        "timezone": zone,
        "start": read.wall_clock(start, zone),
        "end": read.wall_clock(start + timedelta(days=1), zone),
        "per_user_daily_limit": "1",
        "rest": "on",
        "rest_name": gettext("Thank you"),
    }
    return Form(values | _cells([{} for _ in range(FIRST_ROWS)]))


def sent_lottery(*, another: bool = False) -> Form:
    """The form of this request, its empty rows left out, and with ``another`` one at the end; one is always there."""
    sent = {name: value.strip() for name, value in request.form.items()}
    rows: dict[int, dict[str, str]] = {}
    for name, value in sent.items():
        if found := _CELL.fullmatch(name):
            rows.setdefault(int(found[1]), {})[found[2]] = value
    filled = [row for _, row in sorted(rows.items()) if any(row.values())]
    others = {name: value for name, value in sent.items() if not name.startswith("prizes.")}
    aliases = {f"prizes.{len(filled)}.name": "rest_name"}
    return Form(others | _cells([*filled, {}] if another or not filled else filled), aliases)


def row_count(form: Form) -> int:
    """The rows of prizes that the form shows."""
    return sum(name.endswith(".weight") for name in form.names)


def weights_of(form: Form) -> list[int | None]:
    """Each row's weight; None for what is no weight."""
    return [_weight(form[f"prizes.{row}.weight"]) for row in range(row_count(form))]


def rest_of(form: Form) -> int:
    """What is missing to a million; below 0 for what is too much."""
    return WEIGHTS - sum(weight or 0 for weight in weights_of(form))


def read_lottery_form(form: Form) -> LotteryBody | None:
    """The body; None, with errors in the form, for one that cannot be."""
    body: dict[str, Any] = {"name": form["name"], "timezone": form["timezone"]}
    readers = {
        "start": lambda text: read.moment(text, form["timezone"]),
        "end": lambda text: read.moment(text, form["timezone"]),
        "per_user_limit": read.number,
        "per_user_daily_limit": read.number,
    }
    for name, reader in readers.items():
        body[name] = _taken(form, name, reader)
    body["prizes"] = _prizes(form)
    try:
        asked = LotteryBody.model_validate(body)
    except ValidationError as error:
        form.add_errors(errors_of(error))
        return None
    return None if form.errors else asked


def _prizes(form: Form) -> list[dict[str, Any]]:
    prizes = [
        {
            "name": form[f"prizes.{row}.name"],
            "template_id": form[f"prizes.{row}.template_id"] or None,
            "weight": _taken(form, f"prizes.{row}.weight", read.number),
            "stock": _taken(form, f"prizes.{row}.stock", read.number),
        }
        for row in range(row_count(form))
    ]
    rest = rest_of(form)
    if None in weights_of(form):
        return prizes
    if form["rest"] and rest > 0:
        prizes.append({"name": form["rest_name"], "template_id": None, "weight": rest, "stock": MAX_QUANTITY})
    elif rest:
        form.add_errors([("prizes.0.weight", sum_problem(rest))])
    return prizes


def sum_problem(rest: int) -> str:
    """What to say of weights that do not sum to a million."""
    if rest > 0:
        return gettext("The weights must sum to 1,000,000: %s are missing.") % number(rest)
    return gettext("The weights must sum to 1,000,000: %s are too many.") % number(-rest)


def _taken(form: Form, name: str, reader: Callable[[str], Any]) -> Any:
    try:
        return reader(form[name])
    except read.FieldError as error:
        form.add_errors([(name, str(error))])
        return None


def _weight(text: str) -> int | None:
    try:
        weight = read.number(text)
    except read.FieldError:
        return None
    return weight if weight is not None and weight <= WEIGHTS else None


def _cells(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    shown = rows[: MOST_PRIZES + 1]  # one too many is told so by the body's own rule
    return {f"prizes.{place}.{column}": row.get(column, "") for place, row in enumerate(shown) for column in COLUMNS}
