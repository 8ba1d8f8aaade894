"""Who is listed or scored, in the words of the gate (``lua/note_risk_subjects.lua``), and the way there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import text

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

Fields = list[tuple[str, str]]
"""Pairs of field and value of a gate's list."""

AT_A_TIME = 1_000
BROUGHT = "brought"

_GATES = text("""
    SELECT template_id, bucket_count FROM coupon_template
     WHERE risk_policy IS NOT NULL AND status = ANY(CAST(:statuses AS text[])) AND claim_end > :now
""")
_CLAIMED = ("scheduled", "active", "paused")
_OVER = ("ended", "offline")

AFTERMATH = timedelta(days=1)
"""After its end the log of a template is emptied within seconds, or when Redis or a worker are back."""


def field_of(dimension: str, value: str) -> str:
    """The field of a list's entry, or of a user's ``score``."""
    return f"{dimension} {value}"


def value_of(word: str | int, expires_at: datetime | None, version: int) -> str:
    """What stands there: block, allow, none or a score; until when; and which change said so."""
    return f"{word} {to_ms(expires_at) if expires_at else 0} {version}"


def gates_with_risk(services: Services) -> list[BucketKeys]:
    """The gates of templates with a risk policy that are or will be claimed from. Raises ``StoreUnavailable``."""
    return _gates(services, _CLAIMED, services.clock())


def gates_with_log(services: Services) -> list[BucketKeys]:
    """Those that may still hold refusals: of templates that are over, too. Raises ``StoreUnavailable``."""
    return _gates(services, (*_CLAIMED, *_OVER), services.clock() - AFTERMATH)


def _gates(services: Services, statuses: Sequence[str], now: datetime) -> list[BucketKeys]:
    with transaction(services.engine) as connection:
        rows = connection.execute(_GATES, {"statuses": list(statuses), "now": now}).all()
    return [BucketKeys(row.template_id, bucket) for row in rows for bucket in range(row.bucket_count)]


def note(services: Services, keys: BucketKeys, fields: Fields) -> None:
    """Bring them to a gate; what is known there by a later change stays. Raises ``StoreUnavailable``."""
    for start in range(0, len(fields), AT_A_TIME):
        args = [word for pair in fields[start : start + AT_A_TIME] for word in pair]
        lua_script("note_risk_subjects")(services.redis, [keys.risk_list], args)


def tell_gates(services: Services, fields: Fields) -> None:
    """Bring a change that is committed to every gate; where Redis is away the sweep brings it."""
    try:
        for keys in gates_with_risk(services):
            note(services, keys, fields)
    except StoreUnavailable as error:
        log.warning("gates learn of listed or scored ones later", count=len(fields), error=str(error))


def flat(fields: Sequence[tuple[str, str]], brought: int) -> Fields:
    """``fields``, and that all up to the version ``brought`` are there, last."""
    return [*fields, (BROUGHT, f"{BROUGHT} 0 {brought}")]
