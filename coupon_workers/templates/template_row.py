"""Between a template's fields, by the names of API.md, and the columns of ``coupon_template``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from coupon_workers.templates.field_type import STORED
from coupon_workers.templates.template import TemplateFields

Row = Mapping[str, Any]
"""A row of ``coupon_template`` by its columns."""

_COLUMN_OF_FIELD = {
    "amount": "amount_minor",
    "percent_off": "percent_off_bp",
    "max_discount": "max_discount_minor",
    "threshold": "threshold_minor",
}

FIELDS = tuple(TemplateFields.model_fields)


def column_of(field: str) -> str:
    """The column that holds ``field``: money and ratios have their unit in its name."""
    return _COLUMN_OF_FIELD.get(field, field)


def fields_of(row: Row) -> dict[str, Any]:
    """A row's values by the names of the fields, as ``TemplateFields`` reads them."""
    return {field: row[column_of(field)] for field in FIELDS}


def stored_fields(row: Row) -> TemplateFields:
    """A row as the template it is, also with a time zone that is not taken any more."""
    return TemplateFields.model_validate(fields_of(row), context=STORED)


def shown_fields(row: Row, fields: Iterable[str] = FIELDS) -> dict[str, Any]:
    """A row's values by the names of the fields, as JSON shows them."""
    return stored_fields(row).model_dump(mode="json", by_alias=True, include=set(fields))


def columns_of(template: TemplateFields, fields: Iterable[str] = FIELDS) -> dict[str, Any]:
    """The columns of ``fields`` with the values of ``template``; objects as JSON."""
    values = {field: getattr(template, field) for field in fields}
    return {
        column_of(field): value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value
        for field, value in values.items()
    }
