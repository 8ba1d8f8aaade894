"""The types of a template's fields: strict where JSON types matter, each with its bounds (API.md, Conventions).

A boolean is not an integer, a number is not a text, 1.0 is not 1; integers stay below 2**53, where every JSON reader
keeps them exact. Instants are RFC 3339 with an offset, whole milliseconds (what is finer is cut off, as the gate
works in milliseconds), answered in UTC.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from coupon_workers.runtime.clock import rfc3339
from coupon_workers.templates.currency import EXPONENTS

MAX_EXACT = 2**53 - 1
"""The largest integer that every JSON reader keeps exact."""
MAX_QUANTITY = 1_000_000_000
MAX_DAYS = 3_650
MAX_LIST = 1_000

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_NAIVE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9:.]+)?")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(3000, 1, 1, tzinfo=UTC)
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories: control characters, lone surrogates, line and paragraph separators."""


def _as_instant(value: Any) -> datetime:
    if isinstance(value, str) and _RFC3339.fullmatch(value):
        try:
            value = datetime.fromisoformat(value.upper())
        except ValueError:
            raise PydanticCustomError("instant", "There is no such instant") from None
    elif isinstance(value, str) and _NAIVE.fullmatch(value):
        raise PydanticCustomError("instant_naive", "An instant needs an offset from UTC: 2026-11-11T00:00:00+08:00")
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise PydanticCustomError("instant", "An instant is a text as in RFC 3339: 2026-11-11T00:00:00+08:00")
    # Compared before it is moved to UTC, which could leave the calendar.
    if not _EARLIEST <= value < _LATEST:
        raise PydanticCustomError("instant_range", "An instant lies in the years 1970 to 2999")
    return value.astimezone(UTC).replace(microsecond=value.microsecond // 1000 * 1000)


def _printable(text: str) -> str:
    if any(unicodedata.category(character) in _UNPRINTABLE for character in text):
        raise PydanticCustomError("text_control", "No control characters or line breaks are allowed")
    if text.isspace():
        raise PydanticCustomError("text_blank", "A text of nothing but spaces says nothing")
    return text


def _as_text(value: Any) -> Any:
    """An integer is read as its decimal text (API.md, Conventions); a boolean is none."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_EXACT:
        return str(value)
    return value


def _currency(code: str) -> str:
    if code not in EXPONENTS:
        raise PydanticCustomError("currency", "A currency is a code of ISO 4217 in upper case, such as CNY")
    return code


PLACE_OF = {"CET": "Europe/Brussels", "EET": "Europe/Athens", "MET": "Europe/Brussels", "WET": "Europe/Lisbon"}
"""Places with a summer to IANA, to PostgreSQL abbreviations: winter time all year. What IANA has them stand for."""

STORED = {"stored": True}
"""The context of a validation of what is stored: it was taken when more was."""


@cache
def known_timezones() -> frozenset[str]:
    """The names that are taken: of the package, not of this machine, the same for every process of a platform."""
    return frozenset((files("tzdata") / "zones").read_text(encoding="ascii").split()) - {"Factory"} - PLACE_OF.keys()


def _timezone(name: str, info: ValidationInfo) -> str:
    was_taken = info.context is STORED and name in PLACE_OF
    if name not in known_timezones() and not was_taken:
        raise PydanticCustomError("timezone", "A time zone is an IANA name, such as Asia/Shanghai")
    return name


Instant = Annotated[
    datetime,
    BeforeValidator(_as_instant),
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
MoneyMinor = Annotated[int, Field(strict=True, ge=1, le=MAX_EXACT)]
"""An amount in minor units, above zero."""
Threshold = Annotated[int, Field(strict=True, ge=0, le=MAX_EXACT)]
BasisPoints = Annotated[int, Field(strict=True, ge=1, le=10_000)]
Quantity = Annotated[int, Field(strict=True, ge=1, le=MAX_QUANTITY)]
Days = Annotated[int, Field(strict=True, ge=1, le=MAX_DAYS)]
DaysOrNone = Annotated[int, Field(strict=True, ge=0, le=MAX_DAYS)]
Priority = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
Flag = Annotated[bool, Field(strict=True)]
Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=64), AfterValidator(_printable)]
TemplateNo = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Word = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9._-]{1,32}$")]
"""A channel: short, and without the commas and spaces that the gate's lists use."""
ExternalId = Annotated[Name, BeforeValidator(_as_text)]
"""A name given elsewhere (product, category, tag): 1–64 characters, or an integer, read as its decimal text."""
Currency = Annotated[
    str,
    StringConstraints(strict=True, max_length=3),
    AfterValidator(_currency),
    WithJsonSchema({"type": "string", "pattern": "^[A-Z]{3}$", "examples": ["CNY"]}),
]
Timezone = Annotated[str, StringConstraints(strict=True, max_length=64), AfterValidator(_timezone)]
Words = Annotated[list[Word], Field(max_length=MAX_LIST)]
ExternalIds = Annotated[list[ExternalId], Field(max_length=MAX_LIST)]
