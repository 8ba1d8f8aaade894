"""A template on sale, with everything a test asks of it: claims, drains, and what the two stores hold then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from coupon_workers.checking.report import check_all
from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate import ClaimGate, Decision
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import route_of
from tests.support.template import insert_template, read_template


@dataclass(frozen=True)
class Sale:
    """One template and the way to its gate."""

    services: Services
    template_id: int
    gate: ClaimGate

    @property
    def keys(self) -> BucketKeys:
        """The template's only bucket."""
        return BucketKeys(self.template_id)

    def claim(self, user: str, request: str = "r1", *, channel: str = "", now_ms: int = 0) -> Decision:
        """Ask the gate."""
        return self.gate.claim(ClaimRequest(self.template_id, user, request, channel), now_ms)

    def claim_each(self, users: Iterable[str], request: str = "r1") -> list[int]:
        """One accepted claim for each user; the claim ids."""
        decisions = [self.claim(user, request) for user in users]
        assert {ClaimOutcome.ACCEPTED} == {decision.outcome for decision in decisions}
        return [decision.claim_id for decision in decisions]

    def drain(self) -> int:
        """Settle what is pending; how many."""
        return drain(self.services, self.template_id, 0)

    def preheat(self) -> int:
        """Rebuild the gate; how many coupons were loaded."""
        return preheat_template(self.services, self.template_id)

    @property
    def stock(self) -> int:
        """Units the gate would still give."""
        stored: Any = self.services.redis.get(self.keys.stock)
        return int(stored)

    @property
    def queued(self) -> int:
        """Entries of the pending stream."""
        length: Any = self.services.redis.xlen(self.keys.pending)
        return int(length)

    def taker(self, user: str) -> str | None:
        """``<count> <last seq>`` of a user."""
        return self._field(self.keys.takers, user)

    def answer(self, user: str, request: str = "r1") -> str | None:
        """``<claim id> <state>`` that the gate remembers of a request."""
        return self._field(self.keys.requests, f"{user} {request}")

    def _field(self, key: str, field: str) -> str | None:
        stored: Any = self.services.redis.hget(key, field)
        return None if stored is None else stored.decode()

    def add_entry(self, fields: dict[Any, Any]) -> str:
        """Put an entry of our own into the pending stream; its id."""
        entry_id: Any = self.services.redis.xadd(self.keys.pending, fields)
        return str(entry_id.decode())

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What the database answers; ``:template_id`` is this one."""
        with self.services.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement), {"template_id": self.template_id})]

    def coupons(self) -> dict[int, str]:
        """Coupon number → user."""
        return dict(self.rows("SELECT coupon_id, user_id FROM coupon WHERE template_id = :template_id"))

    def rejections(self) -> dict[int, str]:
        """Claim id → reason."""
        return dict(self.rows("SELECT claim_id, reason FROM claim_rejection WHERE template_id = :template_id"))

    @property
    def books(self) -> dict[str, Any]:
        """The template's row."""
        return read_template(self.services.engine, self.template_id)


def open_sale(services: Services, **columns: Any) -> Sale:
    """Insert a template (``columns``: see ``insert_template``) and preheat it."""
    sale = Sale(services, insert_template(services.engine, **columns), gate_of(services))
    sale.preheat()
    return sale


def gate_of(services: Services, **changed: Any) -> ClaimGate:
    """A gate with ``changed`` settings."""
    settings = services.settings.model_copy(update=changed)
    return ClaimGate(settings, lambda template_id: services.next_id(route_of(template_id)))


def assert_sound(services: Services) -> None:
    """Every invariant holds at this moment (DESIGN 3); nothing may be under way."""
    found = check_all(services, patience_s=0).breaches
    assert [] == found, found
