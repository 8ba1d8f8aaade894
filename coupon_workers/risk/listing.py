"""Allow and block lists: whoever is on one is let through or refused, whatever the rules say, until it expires."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.risk.policy import Dimension
from coupon_workers.risk.subject import field_of, tell_gates, value_of
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.network import counted_ip
from coupon_workers.runtime.services import Services
from coupon_workers.templates.field_type import Instant

ListName = Literal["allow", "block"]

KEPT = timedelta(days=30)
"""How long it is known that an entry was taken off: gates that hold it are long gone then."""

_PUT = text("""
    INSERT INTO risk_list_entry AS e (dimension, value, list, expires_at, comment, version, changed_by, changed_at)
    VALUES (:dimension, :value, :list, :expires_at, :comment, nextval('risk_version'), :operator, :now)
    ON CONFLICT (dimension, value) DO UPDATE SET list = excluded.list, expires_at = excluded.expires_at,
           comment = excluded.comment, version = nextval('risk_version'), changed_by = excluded.changed_by,
           changed_at = excluded.changed_at
    RETURNING *
""")
_HOLD = text("SELECT * FROM risk_list_entry WHERE dimension = :dimension AND value = :value FOR UPDATE")
_TAKE_OFF = text("""
    UPDATE risk_list_entry SET list = 'none', expires_at = NULL, comment = NULL, version = nextval('risk_version'),
           changed_by = :operator, changed_at = :now
     WHERE dimension = :dimension AND value = :value RETURNING *
""")
_PAGE = """
    SELECT * FROM risk_list_entry
     WHERE list = :list AND (dimension, value) > (:dimension, :value) AND (expires_at IS NULL OR expires_at > :now)
           {narrowed}
     ORDER BY dimension, value LIMIT :limit
"""
_NARROWED = {
    "only": "dimension = :only",
    # What is searched for as it is written, or as claims are counted by it.
    "search": "(starts_with(value, :search) OR value = :counted)",
}
_FORGET = text("DELETE FROM risk_list_entry WHERE changed_at < :before AND (list = 'none' OR expires_at < :before)")


class ListEntry(BaseModel):
    """A device, address or user on a list."""

    model_config = ConfigDict(frozen=True)

    list: ListName
    dimension: Dimension
    value: str
    expires_at: Instant | None = Field(description="null: for good")
    comment: str | None
    changed_by: str | None = Field(description="the key's id")
    changed_at: Instant


def put_entry(
    services: Services,
    name: ListName,
    dimension: Dimension,
    value: str,
    operator: str | None,
    *,
    expires_at: datetime | None = None,
    comment: str | None = None,
) -> ListEntry:
    """Put it on the list, off the other one, as of now at every gate; the same again changes nothing.

    Raises ``InvalidInput`` for what would never be in force, ``StoreUnavailable``.
    """
    if dimension == "ip" and "/" in value:
        raise InvalidInput([("value", "must be an address: claims name no networks")])
    subject = {"dimension": dimension, "value": _counted(dimension, value)}
    wanted = {"list": name, "expires_at": expires_at, "comment": comment}
    with transaction(services.engine) as connection:
        before = connection.execute(_HOLD, subject).mappings().first()
        if before is not None and wanted == {part: before[part] for part in wanted}:
            return _entry(before)
        if expires_at is not None and expires_at <= services.clock():
            raise InvalidInput([("expires_at", "must lie in the future")])
        row = connection.execute(_PUT, subject | wanted | {"operator": operator, "now": services.clock()})
        after = row.mappings().one()
        facts = _facts(before) if before else None, _facts(after)
        record(connection, AuditAction.RISK_LIST_PUT, _subject(after), before=facts[0], after=facts[1])
    tell_gates(services, [(field_of(**subject), value_of(after["list"], after["expires_at"], after["version"]))])
    return _entry(after)


def take_off(services: Services, name: ListName, dimension: Dimension, value: str, operator: str | None) -> ListEntry:
    """Take it off the list; the entry as it was. Raises ``NotFound`` ``ENTRY_NOT_FOUND``, ``StoreUnavailable``."""
    subject = {"dimension": dimension, "value": _counted(dimension, value)}
    with transaction(services.engine) as connection:
        before = connection.execute(_HOLD, subject).mappings().first()
        if before is None or before["list"] != name:
            raise NotFound("ENTRY_NOT_FOUND", f"this {dimension} is not on the {name} list")
        row = connection.execute(_TAKE_OFF, subject | {"operator": operator, "now": services.clock()})
        after = row.mappings().one()
        record(connection, AuditAction.RISK_LIST_DELETE, _subject(after), before=_facts(before))
    tell_gates(services, [(field_of(**subject), value_of("none", None, after["version"]))])
    return _entry(before)


def read_entries(
    services: Services,
    name: ListName,
    *,
    limit: int,
    after: tuple[str, str] = ("", ""),
    dimension: Dimension | None = None,
    search: str | None = None,
) -> list[ListEntry]:
    """Up to ``limit`` entries in force behind ``after``, by dimension and value; only of ``dimension``, only values
    that begin with ``search``, or that an address counts as. Raises ``StoreUnavailable``."""
    bounds = {"list": name, "dimension": after[0], "value": after[1], "now": services.clock(), "limit": limit}
    given = {"only": dimension, "search": search}
    narrowed = "".join(f" AND {_NARROWED[part]}" for part, value in given.items() if value)
    page = text(_PAGE.format(narrowed=narrowed))
    bounds |= given | {"counted": counted_ip(search or "")}
    with transaction(services.engine) as connection:
        return [_entry(row) for row in connection.execute(page, bounds).mappings()]


def forget_entries(services: Services, now: datetime) -> int:
    """Delete what was taken off, or has expired, long ago. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        return int(connection.execute(_FORGET, {"before": now - KEPT}).rowcount)


def _counted(dimension: Dimension, value: str) -> str:
    """As claims are counted: of IPv6 by the network."""
    return counted_ip(value) if dimension == "ip" else value


def _entry(row: Mapping[Any, Any]) -> ListEntry:
    return ListEntry.model_validate({name: row[name] for name in ListEntry.model_fields})


def _facts(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("list", "dimension", "expires_at", "comment")}


def _subject(row: Mapping[Any, Any]) -> str:
    return f"risk_list:{row['value']}"
