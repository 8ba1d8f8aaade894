"""A difference as a reader finds it, and what a reading of one kind comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Protocol

from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.services import Services

MOST = 10_000
"""Differences that a run lists: a store that is broken all over must not fill memory and tables. A reader stops one
above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """``finding_class`` says what kind of difference it is, ``subject`` of what: within a class a subject differs once.

    ``evidence`` holds what was compared, both sides by name: JSON values, ids as text, amounts in minor units. What
    only grows with time (an age, an instant of reading) has no place in it: the same difference found again has the
    same evidence. ``amount_minor`` is the money at stake, with its currency. ``repair`` None: a person must look.
    """

    finding_class: str
    subject: str
    evidence: Mapping[str, Any]
    repair: RepairName | None = None
    amount_minor: int | None = None
    currency: str | None = None
    template_id: int | None = None
    user_id: str | None = None
    order_no: str | None = None
    coupon_id: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader found. ``examined`` things were looked at.

    ``unjudged`` are subjects, as a difference would name them, that did not hold still: nothing is said of them, and
    what was found of them before stays as it is. ``truncated``: there are more than ``MOST``.
    """

    differences: list[Difference]
    examined: int
    unjudged: frozenset[str] = field(default=frozenset())

    @property
    def truncated(self) -> bool:
        """Whether the list is not whole."""
        return len(self.differences) > MOST


class Reader(Protocol):
    """Compares one kind as of a moment; ``day`` is the business day for orders, else None.

    What changed after ``as_of`` is not judged as if it had been so. Reads only. Raises ``StoreUnavailable``.
    """

    def __call__(self, services: Services, as_of: datetime, day: date | None) -> Reading: ...
