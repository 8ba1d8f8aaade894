"""Statements are taken one after the other, whole or not at all, and those that were replaced are forgotten."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta

import pytest

from coupon_workers.errors import AudienceFileError, StatementRowsError
from coupon_workers.reconciliation.statement import take_statement
from coupon_workers.reconciliation.statement_retention import KEEP, forget_statements
from coupon_workers.runtime.services import Services
from tests.support.broken_off import broken_off_at
from tests.support.closing import ClosingShop
from tests.support.order_books import nothing_written
from tests.support.statement import give, said

DAY = "2026-11-11"
ROW = "o{n},ann,paid,1,0,CNY"


@pytest.fixture
def shop(services: Services) -> ClosingShop:
    """The morning after."""
    return ClosingShop(services).at("2026-11-12T09:00+08:00")


def _stored(shop: ClosingShop) -> list[tuple[int, int, int]]:
    """Revision, rows by the header, rows there are."""
    return [
        (revision, said_, there)
        for revision, said_, there in shop.rows(
            "SELECT revision, row_count, (SELECT count(*) FROM order_statement_row r WHERE r.revision = s.revision)"
            " FROM order_statement s ORDER BY revision"
        )
    ]


def test_two_at_once_come_after_each_other(shop: ClosingShop) -> None:
    """Each different file is a revision of its own, and none is mixed with another."""
    files = [[ROW.format(n=n) for n in range(size)] for size in (1, 2, 3, 4)]

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda rows: give(shop.services, DAY, *rows), files))

    stored = _stored(shop)
    assert [1, 2, 3, 4] == [revision for revision, _, _ in stored]
    assert {1, 2, 3, 4} == {rows for _, rows, _ in stored}
    assert all(rows == there for _, rows, there in stored)


def test_the_same_file_at_once_is_one_revision(shop: ClosingShop) -> None:
    """A client that was not answered, and asks again while the first is at work."""
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: give(shop.services, DAY, ROW.format(n=1)), range(8)))

    assert [answers[0]] * 8 == answers
    assert [(1, 1, 1)] == _stored(shop)


def test_an_older_file_again_is_a_revision(shop: ClosingShop) -> None:
    """What was said before the last word is said anew."""
    for rows in ([], [ROW.format(n=1)], []):
        give(shop.services, DAY, *rows)

    assert [(1, 0, 0), (2, 1, 1), (3, 0, 0)] == _stored(shop)


@pytest.mark.parametrize("statement", range(2, 9))
def test_broken_off_anywhere_nothing_is_left(shop: ClosingShop, statement: int) -> None:
    """The statement of before is in force, and the next try is as the first."""
    give(shop.services, DAY, ROW.format(n=1))

    with nothing_written(shop.services), broken_off_at(shop.services.engine, statement):
        give(shop.services, DAY, ROW.format(n=2), ROW.format(n=3))

    assert (2, 2) == (
        (again := give(shop.services, DAY, ROW.format(n=2), ROW.format(n=3))).revision,
        again.rows,
    )


def test_a_bad_end_of_a_long_file_leaves_nothing(shop: ClosingShop) -> None:
    """Rows that were copied before are gone with it."""
    rows = [ROW.format(n=n) for n in range(25_000)]

    with nothing_written(shop.services):
        with pytest.raises(StatementRowsError):
            give(shop.services, DAY, *rows, "x,ann,paid,-1,0,CNY")
        with pytest.raises(AudienceFileError):
            give(shop.services, DAY, content=said(*rows) + b'"open')


def test_statements_replaced_ninety_days_ago_are_forgotten(shop: ClosingShop) -> None:
    """The latest of each day stays, however old, and so does what was replaced lately."""
    for hour in range(3):
        shop.clock.pass_by(hours=1)
        give(shop.services, DAY, *[ROW.format(n=n) for n in range(hour)])
    give(shop.services, "2026-11-10", ROW.format(n=1))
    replaced = shop.clock.now

    assert 1 == forget_statements(shop.services, replaced + KEEP - timedelta(minutes=1))
    assert 0 == forget_statements(shop.services, replaced + KEEP - timedelta(minutes=1))
    assert [2, 3] == [revision for revision, _, _ in _stored(shop)][-2:]
    assert 1 == forget_statements(shop.services, replaced + KEEP + timedelta(minutes=1))

    assert [(date(2026, 11, 10), 1, 1), (date(2026, 11, 11), 3, 2)] == shop.rows(
        "SELECT business_date, revision, count(*) FROM order_statement_row GROUP BY 1, 2 ORDER BY 1"
    )
    assert 4 == give(shop.services, DAY).revision


def test_forgetting_at_once_takes_each_revision_once(shop: ClosingShop) -> None:
    """Two passes do not wait for each other, nor do the same twice."""
    for number in range(6):
        give(shop.services, DAY, ROW.format(n=number))

    with ThreadPoolExecutor(3) as threads:
        later = shop.clock.now + KEEP + timedelta(days=1)
        forgotten = list(threads.map(lambda _: forget_statements(shop.services, later), range(3)))

    assert (5, [(6, 1, 1)]) == (sum(forgotten), _stored(shop))


def test_the_instant_is_taken_last(shop: ClosingShop) -> None:
    """A look as of a moment while the file is read has not seen it, and will not have."""
    ticks = iter(range(10))
    services = replace(shop.services, clock=lambda: shop.clock.now + timedelta(minutes=next(ticks)))

    came = take_statement(services, date.fromisoformat(DAY), io.BytesIO(said()), "centre")

    assert "2026-11-12T01:01:00Z" == came.received_at
