"""What people type, as the core takes it: money in major units, percentages, wall-clock times, lists with commas."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from coupon_workers.templates.currency import EXPONENTS
from web.console.language import N_

_AMOUNT = re.compile(r"[0-9]{1,16}(?:\.[0-9]{1,4})?", re.ASCII)

MONEY = N_("Write an amount such as 20 or 19.90, with no more decimals than the currency has")
NUMBER = N_("Write a whole number")
PERCENT = N_("Write a percentage such as 15 or 12.5, with two decimals at most")
MOMENT = N_("Write a date and a time, such as 2026-11-11T00:00")


class FieldError(ValueError):
    """A field cannot be read; the message says what to write."""


def money(text: str, currency: str) -> int | None:
    """Minor units; None for nothing. Raises ``FieldError``."""
    return _scaled(text, EXPONENTS.get(currency, 2), MONEY)


def percent(text: str) -> int | None:
    """Basis points; None for nothing. Raises ``FieldError``."""
    return _scaled(text.removesuffix("%").strip(), 2, PERCENT)


def _scaled(text: str, decimals: int, message: str) -> int | None:
    text = text.replace(",", "")
    if not text:
        return None
    if not _AMOUNT.fullmatch(text):
        raise FieldError(message)
    scaled = Decimal(text).scaleb(decimals)
    if scaled != scaled.to_integral_value():
        raise FieldError(message)
    return int(scaled)


def unscaled(value: int | None, decimals: int) -> str:
    """The text from which ``value`` would be read: ``19.90`` for 1990 with two decimals."""
    return "" if value is None else str(Decimal(value).scaleb(-decimals))


def number(text: str) -> int | None:
    """A whole number; None for nothing. Raises ``FieldError``."""
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,15}", text, re.ASCII):
        raise FieldError(NUMBER)
    return int(text)


def moment(text: str, zone: str) -> str | None:
    """The instant, as RFC 3339, at which clocks of ``zone`` show ``text``; None for nothing. Raises ``FieldError``."""
    if not text:
        return None
    try:
        wall = datetime.fromisoformat(text)
        return wall.replace(tzinfo=ZoneInfo(zone)).isoformat() if wall.tzinfo is None else text
    except (ValueError, InvalidOperation):
        raise FieldError(MOMENT) from None
    except (ZoneInfoNotFoundError, OSError):  # the latter for Asia alone, which is a folder
        return f"{text}Z"  # the zone's own error is told


def wall_clock(instant: datetime, zone: str) -> str:
    """What clocks of ``zone`` show, as a field for it has it: exact, so that what nobody touches does not change."""
    shown = instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    exact = "milliseconds" if shown.microsecond else "seconds" if shown.second else "minutes"
    return shown.isoformat(timespec=exact)


def words(text: str) -> list[str]:
    """What stands between commas, spaces around it cut off."""
    return [part for part in map(str.strip, re.split(r"[,,、\n]", text)) if part]
