"""A row of the order centre's statement: what each field may hold (API.md, Orders)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from coupon_workers.campaigns.audience_id import EMPTY, SCIENTIFIC, id_problem
from coupon_workers.field_message import field_message
from coupon_workers.orders.order_request import OrderNo
from coupon_workers.schema.order_statement import STATEMENT_STATUSES
from coupon_workers.templates.currency import EXPONENTS
from coupon_workers.templates.field_type import MAX_EXACT

FIELDS = ("order_no", "user_id", "status", "paid_amount", "discount_amount", "currency")

_ORDER_NO: TypeAdapter[str] = TypeAdapter(OrderNo)
_AMOUNT = re.compile(r"[0-9]{1,16}")
_PLAIN = re.compile(r"[0-9A-Za-z_-]{1,64}")
"""Ids beyond doubt, but for those that may be a number of a spreadsheet."""

_MAYBE_NUMBER = re.compile(r"-?[0-9]+[eE]-[0-9]+")

Problem = tuple[str, str]
"""A field, and what is wrong with it."""


class StatementRow(NamedTuple):
    """An order, as the columns of ``order_statement_row`` have it. ``line_no`` is the line of the file, from 1."""

    line_no: int
    user_id: str
    order_no: str
    status: str
    paid_minor: int
    discount_minor: int
    currency: str


def read_row(line_no: int, cells: list[str]) -> StatementRow | list[Problem]:
    """The row that trimmed cells in the order of ``FIELDS`` spell, or every field that breaks a rule."""
    order_no, user_id, status, paid, discount, currency = cells
    problems = [
        (field, problem)
        for field, cell, look in zip(FIELDS, cells, _LOOKS, strict=True)
        if (problem := look(cell)) is not None
    ]
    if problems:
        return problems
    return StatementRow(line_no, user_id, order_no, status, int(paid), int(discount), currency)


def _order_no_problem(cell: str) -> str | None:
    if _PLAIN.fullmatch(cell) and not _MAYBE_NUMBER.fullmatch(cell):
        return None
    if id_problem(cell) in (EMPTY, SCIENTIFIC):
        return id_problem(cell)
    try:
        _ORDER_NO.validate_python(cell)
    except ValidationError as error:
        return field_message(error.errors(include_url=False)[0])
    return None


def _user_id_problem(cell: str) -> str | None:
    return None if _PLAIN.fullmatch(cell) and not _MAYBE_NUMBER.fullmatch(cell) else id_problem(cell)


def _status_problem(cell: str) -> str | None:
    return None if cell in STATEMENT_STATUSES else f"must be one of {', '.join(STATEMENT_STATUSES)}"


def _amount_problem(cell: str) -> str | None:
    if _AMOUNT.fullmatch(cell) and int(cell) <= MAX_EXACT:
        return None
    return "must be an integer of minor units, 0 or more and below 2^53"


def _currency_problem(cell: str) -> str | None:
    return None if cell in EXPONENTS else "must be a code of ISO 4217 in upper case, such as CNY"


_LOOKS: tuple[Callable[[str], str | None], ...] = (
    _order_no_problem,
    _user_id_problem,
    _status_problem,
    _amount_problem,
    _amount_problem,
    _currency_problem,
)
