"""Money, instants, numbers and spans as the reader's language writes them. Nothing here computes."""

from __future__ import annotations

import json
from copy import copy
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_datetime
from babel.numbers import format_decimal
from flask import g, request
from markupsafe import Markup

from coupon_workers.lottery.odds import WEIGHTS
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.templates.currency import EXPONENTS
from coupon_workers.templates.validity import day_before_midnight
from web.console.language import N_, gettext, language, locale

ZONE_COOKIE = "cw_zone"
"""Set by the console's script to the browser's own time zone."""

_PATTERNS = {"en": ("d MMM y, ", "HH:mm:ss"), "zh": ("y-MM-dd ", "HH:mm:ss")}

_MIDNIGHT = "'24:00:00'"
"""An end at 00:00 is read as one a day later: it is written as the end of the day before, as ISO 8601 has it."""

_SPANS = ((86_400_000, N_("%s d")), (3_600_000, N_("%s h")), (60_000, N_("%s min")), (1_000, N_("%s s")))


def viewer_zone() -> str:
    """The time zone of the browser; UTC for one that has not told."""
    zone: str | None = g.get("viewer_zone")
    if zone is None:
        zone = g.viewer_zone = _known_zone(request.cookies.get(ZONE_COOKIE, ""))
    return zone


def told_zone() -> str | None:
    """The time zone of the browser; None for one that has not told a known one."""
    return viewer_zone() if request.cookies.get(ZONE_COOKIE) == viewer_zone() else None


def near_time(instant: datetime | str | None, zone: str | None = None) -> Markup:
    """An instant in the reader's own time zone; of a reader who has not told his, in ``zone``, whose name is told."""
    return time(instant, None if told_zone() else zone)


def near_until(instant: datetime | str | None, zone: str | None = None) -> Markup:
    """The same of an end."""
    return until(instant, None if told_zone() else zone)


@cache
def _zones() -> frozenset[str]:
    from zoneinfo import available_timezones

    return frozenset(available_timezones())


def _known_zone(name: str) -> str:
    return name if name in _zones() else "UTC"


def time(instant: datetime | str | None, zone: str | None = None) -> Markup:
    """An instant, also as answers spell it, in ``zone`` (a template's, whose name is told), or in the reader's own.
    None: a dash.

    Raises ``ValueError`` for a naive datetime.
    """
    return _time(instant, zone)


def until(instant: datetime | str | None, zone: str | None = None) -> Markup:
    """The same of an end, which is no part of what ends: midnight is 24:00 of the day before."""
    return _time(instant, zone, is_end=True)


def _time(instant: datetime | str | None, zone: str | None, *, is_end: bool = False) -> Markup:
    if instant is None:
        return Markup("—")
    name = zone or viewer_zone()
    return _bare_time(instant, name, is_end=is_end) + (_zone(name) if zone or name == "UTC" else "")


def window(start: datetime | str, end: datetime | str, zone: str) -> Markup:
    """From when to when, in a template's zone, which is told once."""
    return Markup("{} – {}{}").format(_bare_time(start, zone), _bare_time(end, zone, is_end=True), _zone(zone))


def _bare_time(instant: datetime | str, zone: str, *, is_end: bool = False) -> Markup:
    if isinstance(instant, str):
        instant = datetime.fromisoformat(instant)
    told, (day, clock) = rfc3339(instant), _PATTERNS[language()]
    if is_end and day_before_midnight(instant, zone) is not None:
        instant, clock = instant - timedelta(microseconds=1), _MIDNIGHT
    text = format_datetime(instant, day + clock, tzinfo=ZoneInfo(zone), locale=locale())
    return Markup('<time datetime="{}" title="{}">{}</time>').format(told, told, text)


def _zone(name: str) -> Markup:
    return Markup(' <span class="zone">{}</span>').format(name)


def told(instant: str) -> Markup:
    """An instant that is told as RFC 3339, in the reader's own time zone."""
    return time(datetime.fromisoformat(instant))


def money(amount_minor: int | None, currency: str) -> str:
    """``¥20.00``: minor units with as many decimals as ISO 4217 gives the currency. None: a dash."""
    if amount_minor is None:
        return "—"
    exponent = EXPONENTS.get(currency, 2)
    amount = Decimal(amount_minor).scaleb(-exponent)
    pattern = copy(Locale.parse(locale()).currency_formats["standard"])
    pattern.frac_prec = (exponent, exponent)  # Babel's own are CLDR's, which knows no fils of Iraq
    shown: str = pattern.apply(amount, locale(), currency=currency, currency_digits=False)
    return shown


def number(value: int | None) -> str:
    """``12,345``. None: a dash."""
    return "—" if value is None else format_decimal(value, locale=locale())


def percent(basis_points: int | None) -> str:
    """``15%`` for 1500, ``2.5%`` for 250. None: a dash."""
    if basis_points is None:
        return "—"
    return f"{format_decimal(Decimal(basis_points).scaleb(-2).normalize(), locale=locale())}%"


def odds(weight: int | None) -> str:
    """``1.5%`` for a weight of 15,000 in a million: exact, so that those of a lottery add up. None: a dash."""
    if weight is None:
        return "—"
    return f"{format_decimal(Decimal(weight).scaleb(-4), format='#,##0.####', locale=locale())}%"


def observed(share: float | None) -> str:
    """The same for a share of 1, as it came. None: a dash."""
    return odds(None if share is None else round(share * WEIGHTS))


def span(milliseconds: int | None) -> str:
    """``3 s``, ``5 min``, ``2 d``: the largest unit, cut off. None: a dash."""
    if milliseconds is None:
        return "—"
    for unit_ms, text in _SPANS:
        if milliseconds >= unit_ms:
            return gettext(text) % (milliseconds // unit_ms)
    return gettext("%s ms") % milliseconds


def now() -> datetime:
    """This moment, for what a page says of itself."""
    return datetime.now(UTC)


def plain(value: object) -> str:
    """A field's value as it stands in the API: JSON, without quotes around a text. None: a dash."""
    if value is None:
        return "—"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def yes_no(value: bool) -> str:
    """``yes`` or ``no``."""
    return gettext("yes") if value else gettext("no")
