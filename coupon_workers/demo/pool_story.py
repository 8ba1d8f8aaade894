"""Random amounts: a budget shared out among a crowd that is larger than the pool, to the last unit."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from sqlalchemy import text

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import snapshot
from coupon_workers.checking.report import Invariant
from coupon_workers.demo.stage import Stage
from coupon_workers.demo.traffic import Traffic
from coupon_workers.finance.money_text import plain_money
from coupon_workers.load.claim_call import ClaimCall, ClaimKind
from coupon_workers.runtime.services import Services

RULE = "pool_spent"
COUPONS_A_STEP = 60
USERS_A_STEP = 90
MEAN_MINOR, LEAST_MINOR, MOST_MINOR = 500, 100, 900
RETRY_SHARE = 0.1

_ISSUED = text("""
    SELECT count(*) AS coupons, coalesce(sum(face_value_minor), 0) AS spent_minor,
           min(face_value_minor) AS least_minor, max(face_value_minor) AS most_minor
      FROM coupon WHERE template_id = :template_id
""")


@dataclass(frozen=True, slots=True)
class PoolSpent:
    """The coupons of a pool: how many, what they sum to, the least and the most of them (None of none)."""

    coupons: int
    spent_minor: int
    least_minor: int | None
    most_minor: int | None


class PoolStory:
    """One claim a user; half as many again as there are coupons."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._coupons = COUPONS_A_STEP * stage.scale
        self._template_id = ""

    @property
    def budget_minor(self) -> int:
        """What all coupons of the pool sum to."""
        return self._coupons * MEAN_MINOR

    def prepare(self) -> None:
        """Share the budget out."""
        pool = {"min": LEAST_MINOR, "max": MOST_MINOR, "budget": self.budget_minor, "distribution": "normal"}
        terms: dict[str, Any] = {"type": "random_amount", "total_quantity": self._coupons, "pool": pool}
        self._template_id = self._stage.open_template("pool", per_user_limit=1, **terms)

    def calls(self) -> list[ClaimCall]:
        """The crowd's claims, some of them sent twice."""
        draw = random.Random(self._stage.seed)
        users = range(USERS_A_STEP * self._stage.scale)
        claims = [ClaimCall(self._template_id, f"p{user}", f"{self._stage.run}-pool-{user}") for user in users]
        again = [claim._replace(kind=ClaimKind.RETRY) for claim in claims if draw.random() < RETRY_SHARE]
        return claims + again

    def play(self, traffic: Traffic) -> None:
        """Send them."""
        traffic.claim(self.calls())

    def end(self) -> None:
        """Nothing: the pool is empty."""

    def spent(self, services: Services) -> PoolSpent:
        """What the database has of it. Raises ``StoreUnavailable``."""
        with snapshot(services) as connection:
            row = connection.execute(_ISSUED, {"template_id": int(self._template_id)}).one()
        return PoolSpent(row.coupons, int(row.spent_minor), row.least_minor, row.most_minor)

    def rules(self) -> tuple[Invariant, ...]:
        """The budget is what its coupons sum to."""
        return (Invariant(RULE, "the coupons of a pool that is sold out sum to its budget", self._unspent),)

    def tables(self) -> list[Table]:
        """Budget and coupons."""
        spent = self.spent(self._stage.services)
        table = Table(title="Random amounts", title_justify="left", show_header=False)
        table.add_column("")
        table.add_column("", justify="right")
        table.add_row("users who claimed", f"{USERS_A_STEP * self._stage.scale:,}")
        table.add_row("coupons issued", f"{spent.coupons:,} of {self._coupons:,}")
        table.add_row("budget", _money(self.budget_minor))
        table.add_row("sum of all coupons", _money(spent.spent_minor))
        table.add_row("least / most", f"{_money(spent.least_minor)} / {_money(spent.most_minor)}")
        return [table]

    def _unspent(self, services: Services) -> list[Breach]:
        spent = self.spent(services)
        expected = f"{self._coupons} coupons of {self.budget_minor} in all"
        found = f"{spent.coupons} coupons of {spent.spent_minor} in all"
        return [] if expected == found else [Breach(RULE, f"template {self._template_id}", expected, found)]


def _money(amount_minor: int | None) -> str:
    return "-" if amount_minor is None else plain_money(amount_minor, "CNY")
