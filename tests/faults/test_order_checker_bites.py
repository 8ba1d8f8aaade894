"""The checker must bite on orders: each guard of their path broken on purpose, and the right rules go red."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from sqlalchemy import Engine, TextClause, text
from sqlalchemy.exc import IntegrityError

from coupon_workers.checking.report import check_all
from coupon_workers.errors import CouponWorkersError
from coupon_workers.orders import discount, placement, redeem, refund
from coupon_workers.runtime.prepared_statement import PreparedStatement
from coupon_workers.runtime.services import Services
from coupon_workers.schema import Base
from tests.support.order_shop import OrderShop, line

LIVE_USE = "uq_coupon_use_live"
ONE_EFFECT = "uq_ledger_entry_effect"
_numbers = count()


@pytest.fixture
def shop(services: Services, engine_to_break: Engine) -> OrderShop:
    """A shop in a database whose keys a test may drop."""
    empty(engine_to_break)
    return OrderShop(replace(services, engine=engine_to_break))


def empty(engine: Engine) -> None:
    """Nothing is left in any table."""
    tables = ", ".join(table.name for table in Base.metadata.sorted_tables)
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {tables} RESTART IDENTITY"))


@contextmanager
def without(engine: Engine, drop: str, restore: str) -> Iterator[None]:
    """A guard of the database is away; with it goes whatever it would not bear."""
    with engine.begin() as connection:
        connection.execute(text(drop))
    yield
    empty(engine)
    with engine.begin() as connection:
        connection.execute(text(restore))


def worse(statement: Any, old: str, new: str) -> Any:
    """The statement with one text in it, which must be there, replaced."""
    if isinstance(statement, TextClause):
        assert statement.text.count(old) == 1, old
        return text(statement.text.replace(old, new))
    assert isinstance(statement, PreparedStatement)
    assert statement.prepare.count(old) == 1, old
    changed = copy(statement)
    changed.name = f"broken_{next(_numbers)}"  # connections keep what they have prepared under a name
    changed.prepare = statement.prepare.replace(old, new).replace(statement.name, changed.name, 1)
    changed.call = statement.call.replace(statement.name, changed.name, 1)
    return changed


def broken(shop: OrderShop) -> set[str]:
    """The names of the rules that do not hold."""
    return {breach.invariant for breach in check_all(shop.services, patience_s=0).breaches}


def attempt(call: Callable[[], object]) -> bool:
    """Whether the call was answered, and not refused by a guard."""
    try:
        call()
    except (CouponWorkersError, IntegrityError):
        return False
    return True


def test_a_coupon_locked_twice_is_seen_when_its_last_guard_is_gone(
    shop: OrderShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three guards stand one behind the other: the reading, the UPDATE's own condition, the unique index."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])

    monkeypatch.setattr(placement, "check_free", lambda *_: None)
    unread = attempt(lambda: shop.lock("o2", [coupon]))
    monkeypatch.setattr(placement, "_LOCK", worse(placement._LOCK, "AND status = 'unused'", ""))
    unconditional = attempt(lambda: shop.lock("o2", [coupon]))
    guarded = broken(shop)
    with without(shop.services.engine, f"DROP INDEX {LIVE_USE}", live_use_index(shop)):
        unguarded = attempt(lambda: shop.lock("o2", [coupon]))
        found = broken(shop)

    assert (False, False, set()) == (unread, unconditional, guarded)
    assert (True, {"live_use", "flow_history"}) == (unguarded, found)


def live_use_index(shop: OrderShop) -> str:
    """How it was made."""
    [(definition,)] = shop.rows("SELECT pg_get_indexdef(CAST(:name AS regclass))", name=LIVE_USE)
    return str(definition).replace(" ON ONLY ", " ON ")


def test_a_redemption_booked_twice_is_seen(shop: OrderShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unique effect refuses it; without that the ledger has more than the discount."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    twice = "FROM (SELECT * FROM charged UNION ALL SELECT * FROM charged) AS charged JOIN coupon_template"
    monkeypatch.setattr(redeem, "_REDEEM", worse(redeem._REDEEM, "FROM charged JOIN coupon_template", twice))

    guarded = attempt(lambda: shop.pay("o1")), broken(shop)
    with without(
        shop.services.engine,
        f"ALTER TABLE ledger_entry DROP CONSTRAINT {ONE_EFFECT}",
        f"ALTER TABLE ledger_entry ADD CONSTRAINT {ONE_EFFECT} UNIQUE (user_id, order_no, coupon_id, kind, reference)",
    ):
        unguarded = attempt(lambda: shop.pay("o1")), broken(shop)

    assert (False, set()) == guarded
    assert (True, {"ledger_use"}) == unguarded


def test_a_redemption_without_its_order_in_the_history_is_seen(
    shop: OrderShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps are legal, and nobody could tell any more whose they were."""
    shop.lock("o1", [shop.issue(shop.template())])
    nameless = worse(
        redeem._REDEEM, "'redeem', before_status, status, order_no,", "'redeem', before_status, status, NULL,"
    )
    monkeypatch.setattr(redeem, "_REDEEM", nameless)

    shop.pay("o1")

    assert {"use_history"} == broken(shop)


def test_a_split_that_takes_more_off_a_line_than_it_costs_is_seen(
    shop: OrderShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum is right."""
    monkeypatch.setattr(discount, "allocate", lambda total, amounts: [total, *[0] * (len(amounts) - 1)])

    shop.lock("o1", [shop.issue(shop.template())], [line("1", 100), line("2", 14_900)])

    assert {"order_money"} == broken(shop)


def test_a_refund_that_the_order_does_not_count_is_seen(shop: OrderShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one would pay back too much."""
    shop.pay_directly("o1", [shop.issue(shop.template())])
    uncounted = worse(refund._REFUND, "refunded_minor = refunded_minor + ", "refunded_minor = 0 * ")
    monkeypatch.setattr(refund, "_REFUND", uncounted)

    shop.refund("o1", "ref-1", [("1", 1)])

    assert {"refund_money"} == broken(shop)
