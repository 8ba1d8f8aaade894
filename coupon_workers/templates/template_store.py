"""Templates in PostgreSQL. Every function works in the transaction of the connection it is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Executable, Select, Table, and_, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from coupon_workers.coupons.wallet_note import note_everybody
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.runtime.newest_page import newest
from coupon_workers.schema import CouponTemplate
from coupon_workers.templates.template_row import Row
from coupon_workers.templates.template_status import CLOCKED, STOPS, TemplateStatus

_table = cast(Table, CouponTemplate.__table__)
_TEMPLATE_NO_KEY = "uq_coupon_template_template_no"

_SHOWN = frozenset(
    {"name", "type", "currency", "amount_minor", "percent_off_bp", "max_discount_minor", "threshold_minor"}
)
"""Columns that a wallet shows of each of a template's coupons."""


def insert_template(
    connection: Connection, template_id: int, columns: Mapping[str, Any], created_by: str | None
) -> tuple[Row, bool]:
    """A new draft, or the template that has this identity already: the same request made it, and died; and whether
    it is new.

    ``template_no`` is made of the identity when ``columns`` has none.

    Raises ``Conflict`` ``TEMPLATE_NO_TAKEN``.
    """
    values = dict(columns) | {"template_id": template_id, "created_by": created_by, "status": TemplateStatus.DRAFT}
    values["template_no"] = values["template_no"] or f"T{template_id}"
    with _template_no_is_free(values["template_no"]):
        draft = insert(_table).values(values).on_conflict_do_nothing(index_elements=[_table.c.template_id])
        rows = _rows(connection, draft.returning(_table))
    return (rows[0], True) if rows else (read_template(connection, template_id), False)


def read_template(connection: Connection, template_id: int) -> Row:
    """The row as it was last committed. Raises ``NotFound`` ``TEMPLATE_NOT_FOUND``."""
    return _one(connection, template_id, select(_table))


def lock_template(connection: Connection, template_id: int) -> Row:
    """The row, held by this transaction until its end: what is decided on it stays true.

    Raises ``NotFound`` ``TEMPLATE_NOT_FOUND``.
    """
    return _one(connection, template_id, select(_table).with_for_update())


def _one(connection: Connection, template_id: int, statement: Select[Any]) -> Row:
    rows = _rows(connection, statement.where(_table.c.template_id == template_id))
    if not rows:
        raise NotFound("TEMPLATE_NOT_FOUND", f"there is no template {template_id}")
    return rows[0]


def _rows(connection: Connection, statement: Executable) -> list[Row]:
    # SQLAlchemy types the keys of its mappings more widely than the names they are.
    return cast("list[Row]", connection.execute(statement).mappings().all())


def read_page(
    connection: Connection, *, limit: int, before: int | None, status: TemplateStatus | None, now: datetime
) -> list[Row]:
    """The newest ``limit`` templates with identities below ``before``; only those whose status at ``now`` is asked."""
    wanted = newest(CouponTemplate.template_id, limit=limit, before=before)
    return _rows(connection, wanted if status is None else wanted.where(_status_is(status, now)))


def _status_is(status: TemplateStatus, now: datetime) -> ColumnElement[bool]:
    """``effective_status`` in SQL."""
    if status not in CLOCKED:
        return _table.c.status == status
    when = {
        TemplateStatus.SCHEDULED: _table.c.claim_start > now,
        TemplateStatus.ACTIVE: and_(_table.c.claim_start <= now, _table.c.claim_end > now),
        TemplateStatus.ENDED: _table.c.claim_end <= now,
    }
    return and_(_table.c.status.in_(sorted(CLOCKED)), when[status])


def move_template(connection: Connection, row: Row, status: TemplateStatus) -> Row:
    """Leave the status of ``row`` for ``status``. Where claiming stops, claims accepted until now are outdated by
    the next ``pause_epoch``.

    Raises ``Conflict`` ``INVALID_STATUS`` when the template is no longer as ``row`` says.
    """
    step = 1 if status in STOPS.values() else 0
    return change_template(connection, row, {"status": status, "pause_epoch": _table.c.pause_epoch + step})


def change_template(connection: Connection, row: Row, columns: Mapping[str, Any]) -> Row:
    """Change ``columns`` of the template that is as ``row`` says, as its next version.

    Raises ``Conflict``: ``TEMPLATE_NO_TAKEN``, and ``INVALID_STATUS`` when somebody changed it since it was read.
    """
    statement = (
        update(_table)
        .where(
            _table.c.template_id == row["template_id"],
            _table.c.status == row["status"],
            _table.c.version == row["version"],
        )
        .values(dict(columns) | {"version": _table.c.version + 1, "updated_at": func.now()})
        .returning(_table)
    )
    with _template_no_is_free(columns.get("template_no")):
        changed = _rows(connection, statement)
    if not changed:
        present = read_template(connection, row["template_id"])
        raise Conflict(
            "INVALID_STATUS",
            f"the template has changed meanwhile and is {present['status']}",
            current_status=present["status"],
        )
    if not _SHOWN.isdisjoint(columns):
        note_everybody(connection)
    return changed[0]


@contextmanager
def _template_no_is_free(template_no: str | None) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        diagnosis = getattr(error.orig, "diag", None)
        if getattr(diagnosis, "constraint_name", None) != _TEMPLATE_NO_KEY:
            raise
        raise Conflict(
            "TEMPLATE_NO_TAKEN", f"another template has the number {template_no}", template_no=template_no
        ) from None
