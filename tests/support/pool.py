"""A template of random amounts on sale, and what of its pool is where."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from coupon_workers.claiming.key import HELD
from coupon_workers.claiming.pending import read_pending
from coupon_workers.pools.pool_store import fill_pool
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template import TemplateFields
from coupon_workers.templates.template_row import fields_of
from tests.support.sale import Sale, gate_of
from tests.support.template import insert_template, read_template

SMALL = {"min": 100, "max": 900, "budget": 5_000, "distribution": "uniform"}
"""For the ten units that a template of tests has."""


def listed(sale: Sale) -> Counter[int]:
    """What the gate would still give: the list without what it passes over."""
    values: Any = sale.services.redis.lrange(sale.keys.pool, 0, -1)
    meta: Any = sale.services.redis.hgetall(sale.keys.meta)
    held = {int(name[5:]): int(count) for name, count in meta.items() if name.startswith(HELD.encode())}
    return Counter(map(int, values)) - Counter(held)


def drawn(sale: Sale) -> list[int | None]:
    """What the claims of the pending stream have drawn, in their order."""
    claims, _ = read_pending(sale.services.redis, sale.keys, 10_000)
    return [claim.face_value for claim in claims]


@dataclass(frozen=True)
class PoolSale(Sale):
    """A sale of which the amounts are drawn."""

    def pool(self) -> Counter[int]:
        """Every face value of the pool, as it was shared out."""
        rows = self.rows("SELECT amount_minor, quantity FROM pool_value WHERE template_id = :template_id")
        return Counter(dict(rows))

    def left(self) -> Counter[int]:
        """What the database has left of it."""
        left = dict(
            self.rows(
                "SELECT amount_minor, quantity - issued_quantity FROM pool_value"
                " WHERE template_id = :template_id AND issued_quantity < quantity"
            )
        )
        return Counter(left)

    def listed(self) -> Counter[int]:
        """As the function of this name."""
        return listed(self)

    def drawn(self) -> list[int | None]:
        """As the function of this name."""
        return drawn(self)

    def worth(self) -> dict[int, int]:
        """Coupon number → face value."""
        return dict(
            self.rows(
                "SELECT coupon_id, face_value_minor FROM coupon"
                " WHERE template_id = :template_id AND source <> 'transfer'"
            )
        )


def open_pool(services: Services, *, pool: dict[str, Any] = SMALL, **columns: Any) -> PoolSale:
    """Insert a template of random amounts with its pool (``columns``: see ``insert_template``) and preheat it."""
    template_id = insert_template(services.engine, type="random_amount", amount_minor=None, pool=pool, **columns)
    with services.engine.begin() as connection:
        template = TemplateFields.model_validate(fields_of(read_template(services.engine, template_id)))
        fill_pool(connection, template_id, template)
    sale = PoolSale(services, template_id, gate_of(services))
    sale.preheat()
    return sale
