"""Ending coupons whose validity has passed: all of them, once, and no other (DESIGN 7 and 10; FAULTS 17)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from freezegun import freeze_time
from pydantic import SecretStr
from sqlalchemy import text

from coupon_workers.coupons import expiry
from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.errors import Conflict
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import expire_coupons as expire_coupons_task
from coupon_workers.wallet.wallet_front import first_page
from tests.conftest import PostBox
from tests.support.gift import at_once, events, flow, give
from tests.support.order_shop import OrderShop
from tests.support.sale import Sale, assert_sound, open_sale

DAY = timedelta(days=1)
MOMENT = timedelta(milliseconds=1)


@pytest.fixture
def sale(services: Services) -> Sale:
    """Thirty units, twenty of them issued to u0 … u19; valid for seven days."""
    opened = open_sale(services, total_quantity=30, transferable=True)
    opened.claim_each(f"u{number}" for number in range(20))
    opened.drain()
    return opened


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven coupons a transaction."""
    monkeypatch.setattr(expiry, "CHUNK", 7)


def number_of(sale: Sale, user: str) -> int:
    """The user's coupon."""
    return next(coupon_id for coupon_id, owner in sale.coupons().items() if owner == user)


def last_end(sale: Sale) -> datetime:
    """When the last coupon ends."""
    [(end,)] = sale.rows("SELECT max(valid_to) FROM coupon")
    instant: datetime = end
    return instant


def statuses(sale: Sale) -> dict[str, int]:
    """How many coupons are in each status."""
    return dict(sale.rows("SELECT status, count(*) FROM coupon GROUP BY status"))


def change(sale: Sale, assignments: str, users: str = "u0") -> None:
    """Move coupons behind everybody's back."""
    with sale.services.engine.begin() as connection:
        connection.execute(
            text(f"UPDATE coupon SET {assignments} WHERE user_id = ANY(:users)"), {"users": users.split()}
        )


def test_a_coupon_ends_with_its_validity_and_not_before(sale: Sale) -> None:
    """The end is the first instant at which it no longer holds."""
    change(sale, "valid_to = valid_to + interval '1 second'")
    end = last_end(sale)

    early = expire_coupons(sale.services, end - MOMENT)
    kept = statuses(sale)
    at_its_end = expire_coupons(sale.services, end)

    assert (19, {"unused": 1, "expired": 19}, 1) == (early, kept, at_its_end)
    assert {"expired": 20} == statuses(sale)


def test_each_ended_coupon_is_told_of_once(sale: Sale) -> None:
    """A row in its history, an event, and nothing for a second sweep."""
    now = last_end(sale)
    with freeze_time(now):
        expired = expire_coupons(sale.services, now), expire_coupons(sale.services, now)

    coupon_id = number_of(sale, "u3")
    assert (20, 0) == expired
    assert [(1, "issue", None, "unused", "claim"), (2, "expire", "unused", "expired", "expiry")] == flow(
        sale, coupon_id
    )
    assert sorted((user, number) for number, user in sale.coupons().items()) == sorted(events(sale, "coupon.expired"))
    assert [(now,)] == sale.rows("SELECT DISTINCT updated_at FROM coupon")
    assert_sound(sale.services)


@pytest.mark.parametrize(
    "assignments",
    [
        "status = 'locked', order_no = 'o-1'",
        "status = 'redeemed', order_no = 'o-1'",
        "status = 'revoked'",
        "status = 'transferred'",
    ],
)
def test_only_unused_coupons_end(sale: Sale, assignments: str) -> None:
    """A lock outlives the validity until its own deadline; what is final stays."""
    change(sale, assignments)
    before = statuses(sale)

    assert 19 == expire_coupons(sale.services, last_end(sale) + DAY)

    del before["unused"]
    assert before | {"expired": 19} == statuses(sale)


def test_a_coupon_that_is_let_go_after_its_end_goes_with_the_next_sweep(sale: Sale) -> None:
    """It was locked when its validity passed."""
    now = last_end(sale)
    change(sale, "status = 'locked', order_no = 'o-1'")
    expire_coupons(sale.services, now)
    change(sale, "status = 'unused'")

    assert 1 == expire_coupons(sale.services, now)


@pytest.mark.usefixtures("small_chunks")
def test_chunk_after_chunk_until_nothing_is_left(sale: Sale, post: PostBox) -> None:
    """No follow-up, no coupon left out or taken twice."""
    post.sent.clear()

    assert 20 == expire_coupons(sale.services, last_end(sale))

    assert [] == post.sent
    assert_sound(sale.services)


@pytest.mark.usefixtures("small_chunks")
def test_a_turn_that_is_over_hands_the_rest_on(sale: Sale, post: PostBox) -> None:
    """To one follow-up; the chunk at hand is finished."""
    post.sent.clear()

    first = expire_coupons(sale.services, last_end(sale), turn_s=-1)

    assert (7, [expire_coupons_task()]) == (first, post.sent)
    assert {"expired": 7, "unused": 13} == statuses(sale)
    assert 13 == expire_coupons(sale.services, last_end(sale))


@pytest.mark.usefixtures("small_chunks")
def test_sweeps_at_once_share_the_work(sale: Sale) -> None:
    """Each coupon is ended by one of them."""
    now = last_end(sale)

    outcomes = at_once(*[partial(expire_coupons, sale.services, now)] * 4)

    left = expire_coupons(sale.services, now)
    assert 20 == sum(outcomes) + left
    assert_sound(sale.services)


def test_a_coupon_in_other_hands_holds_nobody_up(sale: Sale) -> None:
    """It is stepped around, and goes with the next sweep."""
    now = last_end(sale)
    with sale.services.engine.begin() as connection:
        connection.execute(text("SELECT FROM coupon WHERE user_id = 'u0' FOR UPDATE"))
        beside = expire_coupons(sale.services, now)

    assert (19, 1) == (beside, expire_coupons(sale.services, now))


def test_claims_are_settled_while_a_sweep_is_at_work(sale: Sale) -> None:
    """Coupons that are being ended are in nobody's way."""
    now = last_end(sale)
    with sale.services.engine.begin() as connection:
        connection.execute(expiry._EXPIRE, expiry._arguments(now))
        sale.claim_each(["new"])

        assert 1 == sale.drain()

    assert {"expired": 20, "unused": 1} == statuses(sale)
    assert_sound(sale.services)


def test_at_the_last_instant_a_coupon_is_given_away_or_ends(sale: Sale) -> None:
    """Twenty times in a race between owner and sweep: one final state each, and its history agrees."""
    now = last_end(sale)
    early = replace(sale.services, clock=lambda: now - 10 * MOMENT)
    coupons = {user: number for number, user in sale.coupons().items()}
    outcomes: list[Any] = []

    for user, coupon_id in coupons.items():
        sweep, gift = partial(expire_coupons, sale.services, now), partial(give, early, user, coupon_id, "heir")
        outcomes += at_once(sweep, gift)
        change(sale, "valid_to = valid_to + interval '1 day'", " ".join(set(coupons) - {user}))
        now += DAY

    refused = Counter(error.code for error in outcomes if isinstance(error, Conflict))
    assert set(refused) <= {"EXPIRED"}
    assert [] == [outcome for outcome in outcomes if not isinstance(outcome, int | Conflict)]
    assert_sound(sale.services)


def test_orders_and_the_sweep_at_once_leave_one_state(services: Services) -> None:
    """Lock, payment, release and return of thirty coupons in their last instant, while two sweeps end them: each ends
    in one state that its history, its order and the ledger agree on (FAULTS 17)."""
    shop = OrderShop(services)
    template_id = shop.template(threshold_minor=0)
    coupons = [shop.issue(template_id, valid_to=shop.clock.now + MOMENT) for _ in range(30)]
    end = shop.clock.now + MOMENT
    for number, coupon_id in enumerate(coupons[:20]):
        shop.lock(f"o{number}", [coupon_id])
    for number in range(10):
        shop.pay(f"o{number}")

    sweeps = [partial(expire_coupons, shop.services, end)] * 2
    returns = [partial(shop.refund, f"o{number}", f"r{number}") for number in range(0, 10, 2)]
    payments = [partial(shop.pay, f"o{number}") for number in range(10, 15)]
    releases = [partial(shop.release, f"o{number}") for number in range(15, 20)]
    locks = [partial(shop.lock, f"o{number}", [coupons[number]]) for number in range(20, 30)]
    outcomes = at_once(*sweeps, *returns[:3], *payments[:3], *releases[:3], *locks[:3])
    for act in (*returns[3:], *payments[3:], *releases[3:], *locks[3:]):
        outcomes += at_once(act, *sweeps)
    expire_coupons(shop.services, end)

    problems = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert set() == {getattr(error, "code", repr(error)) for error in problems} - {"COUPON_NOT_AVAILABLE", "EXPIRED"}
    ended = {shop.status(coupon_id) for coupon_id in coupons}
    assert ended <= {"expired", "redeemed", "locked"}
    assert {"redeemed"} == {shop.status(coupon_id) for coupon_id in coupons[10:15]}
    assert {"expired"} == {shop.status(coupon_id) for coupon_id in coupons[15:20]}
    assert_sound(shop.services)


def test_kept_wallets_are_forgotten(sale: Sale) -> None:
    """So that the page shows what the row says."""
    first_page(sale.services, "u1")

    expire_coupons(sale.services, last_end(sale))

    assert ["expired"] == [item["status"] for item in first_page(sale.services, "u1")["items"]]


def test_it_goes_on_without_redis(sale: Sale) -> None:
    """The kept pages then go by themselves."""
    settings = sale.services.settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1/0")})

    assert 20 == expire_coupons(replace(sale.services, redis=make_redis(settings)), last_end(sale))


FILL = text("""
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                        source, claimed_at)
    SELECT 'm' || n, n, 7001, 1, 'r', 1, now() - interval '9 days',
           now() + CASE WHEN n <= 200 THEN - interval '1 hour' ELSE interval '1 day' END, 'claim', now()
      FROM generate_series(1, 20000) AS n
""")


@pytest.mark.parametrize("analysed", [False, True])
def test_a_chunk_is_found_by_the_index_of_unused_coupons(sale: Sale, analysed: bool) -> None:
    """And changed by the coupons' keys, whether the statistics know the coupons or not."""
    with sale.services.engine.begin() as connection:
        connection.execute(FILL)
        if analysed:
            connection.execute(text("ANALYZE coupon"))

    with sale.services.engine.begin() as connection:
        statement = text(expiry._EXPIRE.text.replace("WITH ended", "EXPLAIN WITH ended"))
        plan = "\n".join(connection.scalars(statement, expiry._arguments(sale.services.clock())))

    found, changed = plan.split("CTE moved")
    assert "valid_to_idx" in found
    assert "Index Scan using coupon_p0_pkey" in changed or "Index Scan using coupon_p0_coupon_id_idx" in changed
    assert "valid_to_idx" not in changed
    assert "Seq Scan" not in plan
