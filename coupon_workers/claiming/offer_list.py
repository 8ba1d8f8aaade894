"""The list of active and coming templates: in PostgreSQL, in Redis for less than a second, and in each front.

A front's copy holds for as long as Redis keeps the very list it was made of: the stamp in front of it is asked for in
the round trip that asks for the user's state. So a change that forgets the list is seen by the next reader of every
front, and one that could not be told to Redis when the list runs out.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from redis.exceptions import RedisError
from sqlalchemy import text

from coupon_workers.claiming.listed_template import ListedTemplate, Row, list_as_json, list_of, listed
from coupon_workers.claiming.offer_pages import OfferPages
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.kept_page import KeptPages
from coupon_workers.runtime.lean_redis import pack
from coupon_workers.runtime.services import Services

OFFERS_KEY = "cw:offers"
"""String: the list with its stamp, or the token of whoever is filling it."""

MOST_LISTED = 1_000
"""Templates in the list, the newest ones: what is older is read from PostgreSQL, page by page."""

_STAMP = 16

_OFFERS = text(
    """
    SELECT template_id, name, type, currency, amount_minor, percent_off_bp, max_discount_minor, threshold_minor,
           per_user_limit, per_user_daily_limit, claim_start, claim_end, timezone, bucket_count, channels_claim,
           total_quantity - issued_quantity - reserved_quantity AS free,
           issued_quantity + reserved_quantity = total_quantity AND held_quantity = 0
           AND issued_quantity + restocked_quantity = granted_quantity AS set_aside
      FROM coupon_template
     WHERE status IN ('scheduled', 'active', 'ended') AND claim_end > :now AND template_id < :before
       AND (CAST(:channel AS text) IS NULL OR channels_claim = '[]' OR jsonb_exists(channels_claim, :channel))
     ORDER BY template_id DESC LIMIT :limit
    """
)

NEWEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class OfferList:
    """``kept``: what the list was made of. ``pages``: what is made of it."""

    stamp: bytes
    kept: bytes
    pages: OfferPages

    ASK_STAMP = pack("GETRANGE", OFFERS_KEY, 0, _STAMP - 1)


class OfferLists:
    """The list as this front knows it. Threads share it."""

    def __init__(self, services: Services, pages: KeptPages) -> None:
        self._services = services
        self._pages = pages
        self.known: OfferList | None = None

    def renewed(self) -> OfferList:
        """The list as Redis keeps it, or read. Raises ``StoreUnavailable`` when neither store answers."""
        found = self._pages.get(OFFERS_KEY, lambda: _read_list(self._services))
        stamp, kept = found[:_STAMP], found[_STAMP:]
        known = self.known
        if known is not None and known.kept == kept:  # read anew, and nothing has changed
            pages = known.pages
        else:
            before = () if known is None else known.pages.templates
            templates, is_whole = list_of(kept, {each.template_id: each for each in before})
            pages = OfferPages(templates, is_whole=is_whole)
        self.known = renewed = OfferList(stamp, kept, pages)
        return renewed


def forget_offers(services: Services) -> None:
    """Have the list read anew, after the commit of a template's change. Raises nothing: it goes by itself."""
    with suppress(RedisError):
        services.redis.unlink(OFFERS_KEY)


def read_older(
    services: Services, channel: str | None, now: datetime, *, before: int, limit: int
) -> list[ListedTemplate]:
    """Templates with an id below ``before``, from the database. Raises ``StoreUnavailable``."""
    return [listed(row) for row in _read_rows(services, channel, now, before, limit)]


def _read_list(services: Services) -> bytes:
    rows = _read_rows(services, None, services.clock(), NEWEST, MOST_LISTED + 1)
    stamp = secrets.token_hex(_STAMP // 2).encode()
    return stamp + list_as_json(rows[:MOST_LISTED], is_whole=len(rows) <= MOST_LISTED)


def _read_rows(services: Services, channel: str | None, now: datetime, before: int, limit: int) -> list[Row]:
    arguments = {"now": now, "channel": channel, "limit": limit, "before": before}
    with database_errors(), services.engine.connect() as connection:
        return [dict(row) for row in connection.execute(_OFFERS, arguments).mappings()]
