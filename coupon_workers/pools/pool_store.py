"""Pools in PostgreSQL, the truth: filled once, and what is left of them. Each works in the caller's transaction."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.pools.chance import shuffle
from coupon_workers.pools.face_values import Tier, bell, even, tiered
from coupon_workers.templates.template import TemplateFields

_ROWS_AT_A_TIME = 10_000

_INSERT = text(
    "INSERT INTO pool_value (template_id, amount_minor, quantity)"
    " SELECT :template_id, amount, quantity"
    "   FROM unnest(CAST(:amounts AS bigint[]), CAST(:quantities AS bigint[])) AS v(amount, quantity)"
)
# What claims that are held for review have drawn is theirs, and issued later.
_IN_REVIEW = (
    "(SELECT face_value_minor AS amount_minor, count(*) AS drawn FROM risk_review"
    " WHERE template_id = :template_id AND state = 'held' AND face_value_minor IS NOT NULL GROUP BY 1) AS held"
)
WITHOUT_HELD = (
    "SELECT amount_minor, quantity - issued_quantity - coalesce(drawn, 0) AS quantity"
    f" FROM pool_value LEFT JOIN {_IN_REVIEW} USING (amount_minor) WHERE template_id = :template_id"
)
_LEFT = text(
    f"{WITHOUT_HELD} AND issued_quantity + coalesce(drawn, 0) < quantity ORDER BY amount_minor"
).execution_options(stream_results=True, max_row_buffer=_ROWS_AT_A_TIME)
_COUNT_LEFT = text(f"SELECT sum(greatest(quantity, 0)) FROM ({WITHOUT_HELD}) AS amount")
_LEFT_OF = text(f"{WITHOUT_HELD} AND amount_minor = ANY(CAST(:amounts AS bigint[]))")

_RECOUNT = text("""
    UPDATE pool_value p SET issued_quantity = counted.issued
      FROM (SELECT v.amount_minor, count(c.template_id) AS issued
              FROM pool_value v
              LEFT JOIN (SELECT template_id, face_value_minor, source FROM coupon WHERE template_id = :template_id
                          UNION ALL
                         SELECT template_id, face_value_minor, source FROM coupon_archive
                          WHERE template_id = :template_id) AS c
                     ON c.face_value_minor = v.amount_minor AND c.source <> 'transfer'
             WHERE v.template_id = :template_id GROUP BY v.amount_minor) AS counted
     WHERE p.template_id = :template_id AND p.amount_minor = counted.amount_minor
       AND p.issued_quantity <> counted.issued AND counted.issued <= p.quantity
""")


def fill_pool(connection: Connection, template_id: int, template: TemplateFields) -> None:
    """Share the budget of a random-amount template out, and write the pool down in the place of an earlier one.

    For a draft on its way out of it, whose row the caller holds: nothing has been issued, and from then on neither
    pool nor total changes.
    """
    connection.execute(text("DELETE FROM pool_value WHERE template_id = :id"), {"id": template_id})
    counts = ((amount, sum(1 for _ in same)) for amount, same in groupby(sorted(face_values(template))))
    while rows := list(islice(counts, _ROWS_AT_A_TIME)):
        # Array literals: of lists the server would parse each number as an expression, several times slower.
        amounts, quantities = ("{" + ",".join(map(str, column)) + "}" for column in zip(*rows, strict=True))
        connection.execute(_INSERT, {"template_id": template_id, "amounts": amounts, "quantities": quantities})


def face_values(template: TemplateFields) -> array[int]:
    """The face values of a template of random amounts, drawn anew, in an order that nobody can foresee."""
    pool, count = template.pool, template.total_quantity
    assert pool is not None
    if pool.tiers is not None:
        tiers = [Tier(tier.min, tier.max, tier.weight) for tier in pool.tiers]
        return tiered(count, tiers, pool.budget)
    share_out = bell if pool.distribution == "normal" else even
    return share_out(count, pool.min, pool.max, pool.budget)


def values_left(connection: Connection, template_id: int) -> array[int]:
    """What is left in the pool, in an order that nobody can foresee."""
    values = array("q")
    for amount, quantity in _left(connection, template_id):
        values.extend([amount] * quantity)
    shuffle(values)
    return values


def count_left(connection: Connection, template_id: int, amounts: list[int]) -> Counter[int]:
    """How often each of ``amounts`` is left in the pool."""
    rows = connection.execute(_LEFT_OF, {"template_id": template_id, "amounts": amounts})
    return Counter({row.amount_minor: row.quantity for row in rows})


def recount_pool(connection: Connection, template_id: int) -> None:
    """Set what the pool has issued of each amount to how many coupons are worth it; the caller keeps settling out.

    An amount of which there are more coupons than the pool had is left as it is, for a person to look at.
    """
    connection.execute(_RECOUNT, {"template_id": template_id})


def draw_left(connection: Connection, template_id: int, count: int, but: Mapping[int, int]) -> list[int]:
    """``count`` values of what is left in the pool without those of ``but``, each unit as likely as another.

    For claims whose own value is gone because Redis had lost its memory: rare, so the pool is gone through. They are
    drawn, not taken: the caller, who holds the template, writes them to coupons and counts them.
    """
    left = int(connection.scalar(_COUNT_LEFT, {"template_id": template_id}) or 0) - sum(but.values())
    if count > left:
        raise AssertionError("the pool holds fewer values than its template has units")
    places = sorted(random.SystemRandom().sample(range(left), count))
    drawn: list[int] = []
    reached = 0
    for amount, quantity in _left(connection, template_id):
        reached += quantity - but.get(amount, 0)
        while len(drawn) < count and places[len(drawn)] < reached:
            drawn.append(amount)
    random.SystemRandom().shuffle(drawn)
    return drawn


def _left(connection: Connection, template_id: int) -> Iterator[Any]:
    """Row by row: a pool may have a million amounts."""
    return iter(connection.execute(_LEFT, {"template_id": template_id}))
