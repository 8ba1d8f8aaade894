"""Telling users of coupons that will end soon: those of the hour, each once (API.md, Back office)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import text

from coupon_workers.coupons import expiry_notice
from coupon_workers.coupons.expiry_notice import warn_of_expiry
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import Queue, Task
from coupon_workers.scheduling.job import due_runs
from schedules.table import TABLE
from tests.support.gift import at_once, events
from tests.support.sale import Sale, assert_sound, open_sale

HOUR = timedelta(hours=1)
NOTICE = timedelta(hours=24)
MOMENT = timedelta(microseconds=1)


@pytest.fixture
def logical_at(services: Services) -> datetime:
    """The full hour that has just begun."""
    return services.clock().replace(minute=0, second=0, microsecond=0)


@pytest.fixture
def sale(services: Services) -> Sale:
    """Twenty coupons, of u0 … u19, that end in seven days."""
    opened = open_sale(services, total_quantity=30)
    opened.claim_each(f"u{number}" for number in range(20))
    opened.drain()
    return opened


def end_at(sale: Sale, end: datetime, users: str | None = None, assignments: str = "status = 'unused'") -> None:
    """Let coupons end at an instant; of all users, when none are named."""
    statement = f"UPDATE coupon SET valid_to = :end, {assignments} WHERE :users IS NULL OR user_id = ANY(:users)"
    with sale.services.engine.begin() as connection:
        named = users.split() if users else None
        connection.execute(text(statement.replace(":users", "CAST(:users AS text[])")), {"end": end, "users": named})


def told(sale: Sale) -> list[str]:
    """Who was told, in order of their names."""
    return sorted(user for user, _ in events(sale, "coupon.expiring"))


def test_the_coupons_of_the_hour_are_told_of(sale: Sale, logical_at: datetime) -> None:
    """From twenty-four hours after the run to an hour later; half-open."""
    first = logical_at + NOTICE
    end_at(sale, first - MOMENT, "u0")
    end_at(sale, first, "u1")
    end_at(sale, first + HOUR - MOMENT, "u2")
    end_at(sale, first + HOUR, "u3")

    count = warn_of_expiry(sale.services, logical_at, logical_at)

    assert (2, ["u1", "u2"]) == (count, told(sale))
    assert [(sale.template_id, logical_at)] == sale.rows(
        "SELECT DISTINCT template_id, created_at FROM outbox WHERE event = 'coupon.expiring'"
    )
    assert_sound(sale.services)


def test_hour_after_hour_every_coupon_is_told_of_once(sale: Sale, logical_at: datetime) -> None:
    """No end falls between two runs."""
    for number in range(20):
        end_at(sale, logical_at + NOTICE + number * timedelta(minutes=15), f"u{number}")

    counts = [warn_of_expiry(sale.services, logical_at + run * HOUR, logical_at + run * HOUR) for run in range(6)]

    assert [4, 4, 4, 4, 4, 0] == counts
    assert 20 == len(set(told(sale)))


def test_a_run_that_comes_again_tells_nobody_twice(sale: Sale, logical_at: datetime) -> None:
    """Also when the first was broken off, and when both run at once."""
    end_at(sale, logical_at + NOTICE)
    run = partial(warn_of_expiry, sale.services, logical_at, logical_at)
    with sale.services.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO outbox (event, user_id, template_id, coupon_id)"
                " SELECT 'coupon.expiring', user_id, template_id, coupon_id FROM coupon WHERE user_id IN ('u1', 'u7')"
            )
        )

    assert 18 == sum(at_once(run, run, run))
    assert 0 == run()
    assert 20 == len(told(sale))


def test_chunk_after_chunk(sale: Sale, logical_at: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them in one instant, as at the end of a local day; also two runs at once, in whatever order they read."""
    monkeypatch.setattr(expiry_notice, "CHUNK", 3)
    end_at(sale, logical_at + NOTICE)
    run = partial(warn_of_expiry, sale.services, logical_at, logical_at)

    assert 20 == sum(at_once(run, run, run, run))

    assert 20 == len(told(sale)) == len(set(told(sale)))


@pytest.mark.parametrize(
    "assignments",
    [
        "status = 'locked', order_no = 'o-1'",
        "status = 'redeemed', order_no = 'o-1'",
        "status = 'expired'",
        "status = 'revoked'",
        "status = 'transferred'",
    ],
)
def test_only_unused_coupons_are_told_of(sale: Sale, logical_at: datetime, assignments: str) -> None:
    """Nobody can do anything about the others."""
    end_at(sale, logical_at + NOTICE, "u0 u1")
    end_at(sale, logical_at + NOTICE, "u1", assignments)

    warn_of_expiry(sale.services, logical_at, logical_at)

    assert ["u0"] == told(sale)


def test_a_template_may_keep_silent(services: Services, logical_at: datetime) -> None:
    """Where it does not notify."""
    sale = open_sale(services, notify=False)
    sale.claim_each(["ann"])
    sale.drain()
    end_at(sale, logical_at + NOTICE)

    assert 0 == warn_of_expiry(services, logical_at, logical_at)


def test_how_long_before_is_a_setting(sale: Sale, logical_at: datetime) -> None:
    """Here three days."""
    settings = sale.services.settings.model_copy(update={"expiry_notice_hours": 72})
    end_at(sale, logical_at + NOTICE, "u0")
    end_at(sale, logical_at + timedelta(days=3), "u1")

    warn_of_expiry(replace(sale.services, settings=settings), logical_at, logical_at)

    assert ["u1"] == told(sale)


def test_a_late_run_tells_of_what_has_not_ended(sale: Sale, logical_at: datetime) -> None:
    """A day late, half of its hour is over: those who can still use their coupons hear of it."""
    now = logical_at + NOTICE + HOUR / 2
    end_at(sale, now - MOMENT, "u0")
    end_at(sale, now, "u1")
    end_at(sale, now + MOMENT, "u2")

    warn_of_expiry(sale.services, logical_at, now)

    assert ["u2"] == told(sale)


def test_each_hour_is_a_run_of_its_own() -> None:
    """A scheduler that was away for three hours sends the three, each with its own hour."""
    [job] = [job for job in TABLE if job.name == "warn_of_expiry"]
    noon = datetime(2026, 11, 11, 12, tzinfo=UTC)

    due = due_runs(job, noon, noon + 3 * HOUR + HOUR / 2)

    expected = [Task("warn_of_expiry", Queue.CARE, (to_ms(noon + hours * HOUR),)) for hours in (1, 2, 3)]
    assert expected == [job.task(logical_at) for logical_at in due]


FILL = text("""
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                        source, claimed_at)
    SELECT 'm' || n, n, 7001, 1, 'r', 1, now() - interval '9 days', now() + n * interval '1 minute', 'claim', now()
      FROM generate_series(1, 20000) AS n
""")


@pytest.mark.parametrize("analysed", [False, True])
def test_the_hour_is_found_by_the_index_of_unused_coupons(sale: Sale, logical_at: datetime, analysed: bool) -> None:
    """Whether the statistics know the coupons, or other ones."""
    with sale.services.engine.begin() as connection:
        connection.execute(FILL)
        if analysed:
            connection.execute(text("ANALYZE coupon"))

    with sale.services.engine.begin() as connection:
        connection.execute(expiry_notice._BY_INDEX)
        window = {"first": logical_at + NOTICE, "end": logical_at + NOTICE + HOUR}
        plan = "\n".join(connection.scalars(text(f"EXPLAIN {expiry_notice._ENDING.text}"), window))

    assert "coupon_p0_valid_to_idx" in plan
    assert "Seq Scan on coupon_p" not in plan
