"""How long a coupon holds: between two fixed instants, or for some days from its issue.

Windows are half-open and in UTC: ``valid_to`` is the first instant at which the coupon no longer holds.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.templates.field_type import Days, DaysOrNone, Flag, Instant

UntilEndOfDay = Annotated[
    Flag,
    # Spelt only where it is set, so that an answer reads like the examples of API.md.
    Field(exclude_if=operator.not_, description="prolong the end to the end of its day in the template's time zone"),
]


class _Validity(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FixedValidity(_Validity):
    """From one instant to another, the same for every coupon, whenever it is issued.

    With ``until_end_of_day`` the coupon holds to the end of the local day in which ``to`` lies.
    """

    mode: Literal["fixed"]
    from_: Instant = Field(alias="from")
    to: Instant
    until_end_of_day: UntilEndOfDay = False


class RelativeValidity(_Validity):
    """``days`` local days long, beginning ``start_after_days`` local days after the issue.

    A local day later is the same wall-clock time on the next date, whatever daylight saving does in between. With
    ``until_end_of_day`` the coupon holds to the end of the local day in which its end would lie: coupons of one day end
    together, those of its first instant too.
    """

    mode: Literal["relative"]
    days: Days
    start_after_days: DaysOrNone = 0
    until_end_of_day: UntilEndOfDay = False


Validity = Annotated[FixedValidity | RelativeValidity, Field(discriminator="mode")]


def valid_window(validity: Mapping[str, Any], timezone: str, issued_at: datetime) -> tuple[datetime, datetime]:
    """``(valid_from, valid_to)`` of a coupon issued at ``issued_at``.

    ``validity`` is the object as ``coupon_template.validity`` holds it. Raises ``ValueError`` for a naive instant.
    """
    if issued_at.tzinfo is None:
        raise ValueError("a naive datetime names no instant")
    if validity["mode"] == "fixed":
        valid_from, valid_to = datetime.fromisoformat(validity["from"]), datetime.fromisoformat(validity["to"])
    else:
        valid_from = days_later(issued_at, validity["start_after_days"], timezone)
        valid_to = days_later(issued_at, validity["start_after_days"] + validity["days"], timezone)
    if validity.get("until_end_of_day", False):
        valid_to = end_of_day(valid_to, timezone)
    return valid_from.astimezone(UTC), valid_to.astimezone(UTC)


def days_later(instant: datetime, days: int, timezone: str) -> datetime:
    """The same wall-clock time ``days`` dates later; where a change of the clock skips it, as much later."""
    if days == 0:
        return instant
    # Adding to an aware datetime moves the wall clock and keeps the zone.
    return (instant.astimezone(ZoneInfo(timezone)) + timedelta(days=days)).astimezone(UTC)


def end_of_day(instant: datetime, timezone: str) -> datetime:
    """The first instant after the local day in which ``instant`` lies."""
    zone = ZoneInfo(timezone)
    tomorrow = instant.astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, time(), zone).astimezone(UTC)


def day_before_midnight(instant: datetime, timezone: str) -> date | None:
    """The local day that is over with ``instant``, which people take for the next one; None in the midst of a day."""
    zone = ZoneInfo(timezone)
    last = (instant - timedelta(microseconds=1)).astimezone(zone).date()
    return last if last < instant.astimezone(zone).date() else None
