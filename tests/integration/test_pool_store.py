"""Pools in PostgreSQL: filled once, whole; what is left is drawn by chance and never more often than it is there."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from coupon_workers.claiming import issue_sql, settle_sql
from coupon_workers.claiming.pending import read_pending
from coupon_workers.errors import InvalidInput
from coupon_workers.pools.pool_store import count_left, draw_left, fill_pool, values_left
from coupon_workers.runtime.services import Services
from coupon_workers.templates import template_desk as desk
from coupon_workers.templates.template import TemplateFields
from coupon_workers.templates.template_row import fields_of
from tests.support.pool import PoolSale, open_pool
from tests.support.template import insert_template, read_template

TIERS = [{"min": 100, "max": 200, "weight": 8}, {"min": 1_000, "max": 3_000, "weight": 2}]
TIERED: dict[str, Any] = {"min": 100, "max": 3_000, "budget": 4_000, "distribution": "tiered", "tiers": TIERS}


@pytest.fixture
def sale(services: Services) -> PoolSale:
    """Two hundred values, many of them alike."""
    pool = {"min": 1, "max": 30, "budget": 2_500, "distribution": "uniform"}
    return open_pool(services, pool=pool, total_quantity=200)


def draw(sale: PoolSale, count: int, but: Counter[int]) -> list[int]:
    """As the settling does."""
    with sale.services.engine.connect() as connection:
        return draw_left(connection, sale.template_id, count, but)


@pytest.mark.parametrize("distribution", ["uniform", "normal", "tiered"])
def test_a_pool_is_the_budget_in_so_many_values(services: Services, distribution: str) -> None:
    """Of each shape, within its bounds."""
    tiers = TIERS if distribution == "tiered" else None

    sale = open_pool(services, pool=TIERED | {"distribution": distribution, "tiers": tiers})

    values = list(sale.pool().elements())
    assert (10, 4_000) == (len(values), sum(values))
    assert all(100 <= value <= 3_000 for value in values)


def test_a_pool_that_is_filled_again_takes_the_place_of_the_first(sale: PoolSale) -> None:
    """A draft that came back and was changed: nothing of the earlier pool is left."""
    fields = fields_of(read_template(sale.services.engine, sale.template_id))
    smaller = TemplateFields.model_validate(fields | {"total_quantity": 3, "pool": TIERED | {"budget": 1_500}})
    with sale.services.engine.begin() as connection:
        fill_pool(connection, sale.template_id, smaller)

    assert (3, 1_500) == (sale.pool().total(), sum(sale.pool().elements()))


def test_what_is_left_is_listed_whole_and_in_no_order(sale: PoolSale) -> None:
    """Two listings are two orders."""
    with sale.services.engine.connect() as connection:
        first, second = (list(values_left(connection, sale.template_id)) for _ in range(2))

    assert sale.pool() == Counter(first) == Counter(second)
    assert first != second
    assert first != sorted(first)


def test_amounts_are_counted_as_often_as_they_are_left(sale: PoolSale) -> None:
    """None for an amount that the pool has not."""
    amount, quantity = next(iter(sale.pool().items()))

    with sale.services.engine.connect() as connection:
        left = count_left(connection, sale.template_id, [amount, 9_999])

    assert (quantity, 0) == (left[amount], left[9_999])


def test_a_draw_takes_no_value_more_often_than_it_is_left(sale: PoolSale) -> None:
    """All but what others of the batch have: exactly the rest."""
    taken = Counter(draw(sale, 50, Counter()))

    rest = Counter(draw(sale, 150, taken))

    assert sale.pool() == taken + rest


def test_a_draw_of_more_than_is_left_is_refused(sale: PoolSale) -> None:
    """A pool that has fewer values than its template has units was tampered with."""
    with pytest.raises(AssertionError):
        draw(sale, 201, Counter())


def test_the_database_refuses_to_issue_a_value_too_often(sale: PoolSale) -> None:
    """The last guard, whatever the code does."""
    with pytest.raises(IntegrityError, match="ck_pool_value_issued"), sale.services.engine.begin() as connection:
        connection.execute(text("UPDATE pool_value SET issued_quantity = quantity + 1"))


def test_a_draft_of_an_earlier_release_that_breaks_a_rule_is_not_published(services: Services) -> None:
    """It could be drafted without its tiers; it stays a draft, and there is no pool."""
    template_id = insert_template(
        services.engine,
        type="random_amount",
        amount_minor=None,
        status="draft",
        pool={"min": 100, "max": 900, "budget": 5_000, "distribution": "tiered"},
    )

    with pytest.raises(InvalidInput, match=r"pool\.tiers"):
        desk.publish_template(services, template_id)

    assert "draft" == read_template(services.engine, template_id)["status"]


def test_a_batch_looks_its_amounts_up_by_key(services: Services) -> None:
    """A large pool is not gone through for a batch of claims."""
    pool = {"min": 1, "max": 2**40, "budget": 2**38 * 20_000, "distribution": "uniform"}
    sale = open_pool(services, pool=pool, total_quantity=20_000)
    sale.claim_each(f"u{number}" for number in range(200))
    claims, _ = read_pending(services.redis, sale.keys, 200)

    with services.engine.begin() as connection:
        template = settle_sql.lock_template(connection, sale.template_id, 0)
        assert template is not None
        entry = issue_sql.entry(pool=True)
        statement = text(f"EXPLAIN WITH {entry}, {issue_sql.DRAWN} SELECT sum(n) FROM drawn")
        plan = "\n".join(connection.scalars(statement, settle_sql._arguments(template, claims)))

    [condition] = re.findall(r"Index Cond: .*template_id = .*", plan)
    assert "amount_minor = ANY" in condition
