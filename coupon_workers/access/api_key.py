"""API keys: made, listed, revoked, looked up. A key is ``cw_<key id>_<secret>``; only its SHA-256 is kept."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Engine, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from coupon_workers.access.principal import SCOPES, Principal
from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.schema import ApiKey

SECRET_BYTES = 32
"""256 random bits: beyond guessing, so that a plain hash is as good as a slow one (schema/access.py)."""

KEY_ID_BYTES = 8
"""Sixteen hexadecimal digits, which name a key in lists and logs."""

LONGEST_NAME = 100

_FORM = re.compile(r"cw_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)

_COLUMNS = (
    ApiKey.key_id,
    ApiKey.name,
    ApiKey.key_hash,
    ApiKey.scopes,
    ApiKey.signed,
    ApiKey.created_at,
    ApiKey.revoked_at,
)


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What may be shown of a key for as long as it is kept. ``revoked_at`` is None while it is valid."""

    key_id: str
    name: str
    scopes: tuple[str, ...]
    signed: bool
    created_at: datetime
    revoked_at: datetime | None

    def shown(self) -> dict[str, object]:
        """For JSON, in the API and at the command line."""
        return {
            "key_id": self.key_id,
            "name": self.name,
            "scopes": list(self.scopes),
            "signed": self.signed,
            "created_at": rfc3339(self.created_at),
            "revoked_at": rfc3339(self.revoked_at) if self.revoked_at else None,
        }


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made: the only moment at which the key itself is known."""

    key: str
    record: KeyRecord


def key_id_from(allotted: int) -> str:
    """The id of a key under an identity that was allotted to whoever asks for it, and may ask twice."""
    return sha256(str(allotted).encode()).hexdigest()[: 2 * KEY_ID_BYTES]


def create_key(
    engine: Engine, *, name: str, scopes: Iterable[str], signed: bool = False, key_id: str | None = None
) -> NewKey:
    """Make a key. ``signed`` demands that its requests are signed (``access/signature.py``); ``key_id``: its id, where
    whoever asks may ask twice.

    Raises ``InvalidInput`` for a bad name or scope, ``Conflict`` ``KEY_MADE`` when there is a key of that id,
    ``StoreUnavailable`` when PostgreSQL is away.
    """
    wanted = tuple(dict.fromkeys(scopes))
    _check(name, wanted)
    key_id = key_id or secrets.token_hex(KEY_ID_BYTES)
    key = f"cw_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    row = {"key_id": key_id, "name": name, "key_hash": hash_of(key), "scopes": list(wanted), "signed": signed}
    with transaction(engine) as connection:
        once = insert(ApiKey).values(row).on_conflict_do_nothing().returning(*_COLUMNS)
        made = connection.execute(once).one_or_none()
        if made is None:
            raise Conflict("KEY_MADE", "this key was made already, and shown")
        facts = {"name": name, "scopes": wanted, "signed": signed}
        record(connection, AuditAction.API_KEY_CREATE, f"api_key:{key_id}", after=facts)
    return NewKey(key, _record(made))


def list_keys(engine: Engine, *, limit: int, before: tuple[datetime, str] | None = None) -> list[KeyRecord]:
    """Up to ``limit`` keys, newest first, from after the one made at ``before`` (its instant and id).

    Raises ``StoreUnavailable``.
    """
    query = select(*_COLUMNS).order_by(ApiKey.created_at.desc(), ApiKey.key_id.desc()).limit(limit)
    if before is not None:
        query = query.where(tuple_(ApiKey.created_at, ApiKey.key_id) < before)
    with transaction(engine) as connection:
        return [_record(row) for row in connection.execute(query)]


def revoke_key(engine: Engine, key_id: str) -> KeyRecord:
    """End a key for good; a key that has ended keeps the instant of its first end.

    Raises ``NotFound`` ``API_KEY_NOT_FOUND``, ``StoreUnavailable``.
    """
    with transaction(engine) as connection:
        ended = connection.execute(
            update(ApiKey).where(ApiKey.key_id == key_id, ApiKey.revoked_at.is_(None)).values(revoked_at=func.now())
        )
        if ended.rowcount:
            record(connection, AuditAction.API_KEY_REVOKE, f"api_key:{key_id}")
        return _read(connection, key_id)


def read_key(engine: Engine, key_id: str) -> KeyRecord:
    """What is kept of a key. Raises ``NotFound`` ``API_KEY_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(engine) as connection:
        return _read(connection, key_id)


def verify_key(engine: Engine, key: str) -> Principal | None:
    """Ask PostgreSQL who holds ``key``; None when it is no key or has been revoked.

    Raises ``StoreUnavailable``.
    """
    key_id = key_id_of(key)
    if key_id is None:
        return None
    principal = live_principals(engine, [key_id]).get(key_id)
    if principal is None or not hmac.compare_digest(principal.key_hash, hash_of(key).hex()):
        return None
    return principal


def live_principals(engine: Engine, key_ids: Iterable[str]) -> dict[str, Principal]:
    """Those of the named keys that exist and are not revoked, by their ids.

    Raises ``StoreUnavailable``.
    """
    query = select(*_COLUMNS).where(ApiKey.key_id.in_(list(key_ids)), ApiKey.revoked_at.is_(None))
    with transaction(engine) as connection:
        rows = connection.execute(query).all()
    return {
        row.key_id: Principal(row.key_id, row.name, frozenset(row.scopes), row.signed, row.key_hash.hex())
        for row in rows
    }


def key_id_of(key: str) -> str | None:
    """The id inside ``key``; None when ``key`` has not the form of one, which needs no look-up to refuse."""
    form = _FORM.fullmatch(key)
    return form[1] if form else None


def hash_of(key: str) -> bytes:
    """What is stored of a key, and, in hex, what its requests are signed with."""
    return sha256(key.encode()).digest()


def _read(connection: Connection, key_id: str) -> KeyRecord:
    row = connection.execute(select(*_COLUMNS).where(ApiKey.key_id == key_id)).one_or_none()
    if row is None:
        raise NotFound("API_KEY_NOT_FOUND", "there is no such key")
    return _record(row)


def _record(row: Any) -> KeyRecord:
    return KeyRecord(row.key_id, row.name, tuple(row.scopes), row.signed, row.created_at, row.revoked_at)


def _check(name: str, scopes: tuple[str, ...]) -> None:
    errors = []
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        errors.append(("name", f"must be 1 to {LONGEST_NAME} printable characters"))
    if not scopes:
        errors.append(("scopes", f"must name at least one of {', '.join(SCOPES)}"))
    errors += [("scopes", f"{scope!r} is none of {', '.join(SCOPES)}") for scope in scopes if scope not in SCOPES]
    if errors:
        raise InvalidInput(errors)
