"""The local days on which users may claim while a check lasts: the gate must count them, and forgets the others."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import text

from coupon_workers.checking.reading import snapshot
from coupon_workers.runtime.services import Services
from coupon_workers.templates.local_day import local_day_number

_RECENT = timedelta(days=3)
"""What is older was not today in any time zone: most coupons need no calendar."""

_DAILY = text("""
    SELECT template_id, timezone FROM coupon_template
     WHERE template_id = ANY(CAST(:template_ids AS bigint[])) AND per_user_daily_limit IS NOT NULL
""")


class OpenDays:
    """Today and tomorrow, by their numbers, of each of the templates that has a limit of the day.

    Raises ``StoreUnavailable``.
    """

    def __init__(self, services: Services, template_ids: Iterable[int]) -> None:
        with snapshot(services) as connection:
            rows = connection.execute(_DAILY, {"template_ids": list(template_ids)}).all()
        now = services.clock()
        self._recent_from = now - _RECENT
        self._zone = {row.template_id: row.timezone for row in rows}
        today = {template_id: local_day_number(now, zone) for template_id, zone in self._zone.items()}
        self._days = {template_id: (f"{day}", f"{day + 1}") for template_id, day in today.items()}

    def of(self, template_id: int) -> tuple[str, ...]:
        """Those of the template."""
        return self._days.get(template_id, ())

    def met(self, template_id: int, at: datetime) -> tuple[str, ...]:
        """The one of the template that ``at`` lies in, if any."""
        if template_id not in self._zone or at < self._recent_from:
            return ()
        day = f"{local_day_number(at, self._zone[template_id])}"
        return (day,) if day in self._days[template_id] else ()
