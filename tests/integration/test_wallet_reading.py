"""Reading a wallet from the database: pages, filters, one coupon with its history (API.md, Wallet)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.services import Services
from coupon_workers.wallet import wallet
from coupon_workers.wallet.wallet import read_coupon, read_wallet
from tests.support.sale import Sale, open_sale


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units; ann has three coupons, bob one."""
    opened = open_sale(services)
    for user, request in (("ann", "r1"), ("ann", "r2"), ("ann", "r3"), ("bob", "r1")):
        opened.claim(user, request)
    opened.drain()
    return opened


def numbers(sale: Sale, user: str) -> list[str]:
    """The user's coupon numbers, newest first."""
    return [str(coupon_id) for coupon_id, owner in sorted(sale.coupons().items(), reverse=True) if owner == user]


def test_a_coupon_reads_as_the_contract_says(sale: Sale) -> None:
    """Every field of it; its number is a string."""
    (coupon,) = read_wallet(sale.services, "bob", limit=10).items

    claimed_at, issued_at = sale.rows("SELECT claimed_at, issued_at FROM coupon WHERE user_id = 'bob'")[0]
    expected = {
        "coupon_no": numbers(sale, "bob")[0],
        "template_id": "7001",
        "template_name": "Double Eleven 100-20",
        "user_id": "bob",
        "status": "unused",
        "type": "amount_off",
        "amount": 2_000,
        "max_discount": None,
        "currency": "CNY",
        "threshold": 10_000,
        "valid_from": rfc3339(claimed_at),
        "valid_to": rfc3339(claimed_at + timedelta(days=7)),
        "source": "claim",
        "order_no": None,
        "issued_at": rfc3339(issued_at),
        "locked_until": None,
    }
    assert expected == coupon


def test_a_percent_coupon_has_a_percentage_and_no_amount(services: Services) -> None:
    """In basis points, with its cap."""
    sale = open_sale(services, type="percent_off", amount_minor=None, percent_off_bp=1_500, max_discount_minor=5_000)
    sale.claim("ann")
    sale.drain()

    (coupon,) = read_wallet(services, "ann", limit=10).items

    assert (1_500, 5_000, False) == (coupon["percent_off"], coupon["max_discount"], "amount" in coupon)


def test_pages_follow_one_another_to_the_end(sale: Sale) -> None:
    """Newest first; the cursor is the last number shown."""
    first = read_wallet(sale.services, "ann", limit=2)
    assert first.next_cursor is not None
    second = read_wallet(sale.services, "ann", limit=2, before=int(first.next_cursor))

    shown = [coupon["coupon_no"] for coupon in [*first.items, *second.items]]
    assert (numbers(sale, "ann"), None) == (shown, second.next_cursor)


def test_a_page_that_is_just_full_is_the_last(sale: Sale) -> None:
    """No empty page follows it."""
    assert read_wallet(sale.services, "ann", limit=3).next_cursor is None


def test_a_status_is_that_of_this_moment(sale: Sale) -> None:
    """An unused coupon past its validity is expired, whether the sweep has come by or not."""
    later = replace(sale.services, clock=lambda: sale.services.clock() + timedelta(days=7, minutes=1))

    def count(services: Services, status: str) -> int:
        return len(read_wallet(services, "ann", limit=10, status=status).items)

    assert (3, 0) == (count(sale.services, "unused"), count(sale.services, "expired"))
    assert (0, 3) == (count(later, "unused"), count(later, "expired"))


def test_the_first_instant_after_the_validity_is_outside_it(sale: Sale) -> None:
    """Half-open: a millisecond before, it holds."""
    valid_to = sale.rows("SELECT valid_to FROM coupon WHERE user_id = 'bob'")[0][0]

    def status_at(moment: timedelta) -> str:
        services = replace(sale.services, clock=lambda: valid_to + moment)
        return str(read_wallet(services, "bob", limit=1).items[0]["status"])

    assert ("unused", "expired") == (status_at(timedelta(milliseconds=-1)), status_at(timedelta(0)))


def test_coupons_that_expire_before_an_instant_are_found(sale: Sale) -> None:
    """Strictly before."""
    valid_to = sale.rows("SELECT valid_to FROM coupon WHERE user_id = 'bob'")[0][0]

    at, after = (
        read_wallet(sale.services, "bob", limit=1, expiring_before=instant).items
        for instant in (valid_to, valid_to + timedelta(milliseconds=1))
    )

    assert (0, 1) == (len(at), len(after))


def test_one_coupon_reads_with_its_history(sale: Sale) -> None:
    """Oldest step first."""
    coupon_no = numbers(sale, "bob")[0]

    coupon = read_coupon(sale.services, "bob", int(coupon_no))

    assert coupon is not None
    (step,) = coupon["history"]
    expected = (coupon_no, 1, "issue", None, "unused", "claim", "r1")
    names = ("flow_no", "action", "from_status", "to_status", "operator", "request_id")
    assert expected == (coupon["coupon_no"], *(step[name] for name in names))


def test_a_coupon_of_another_user_is_not_there(sale: Sale) -> None:
    """Nor is a number nobody has."""
    bobs = int(numbers(sale, "bob")[0])

    assert read_coupon(sale.services, "ann", bobs) is None
    assert read_coupon(sale.services, "ann", 1) is None


def lock_bobs(sale: Sale, order_status: str = "locked") -> datetime:
    """Bob's coupon is on order o-7, which holds it for a quarter of an hour, or held it; until when."""
    until = sale.services.clock().replace(microsecond=0) + timedelta(minutes=15)
    order = text("""
        INSERT INTO coupon_order (user_id, order_no, status, fingerprint, currency, lines, subtotal_minor,
                                  discount_minor, payable_minor, locked_until, created_at, updated_at)
        VALUES ('bob', 'o-7', :status, '', 'CNY', '[]', 10000, 2000, 8000, :until, now(), now())
    """)
    with sale.services.engine.begin() as connection:
        connection.execute(order, {"status": order_status, "until": until})
        connection.execute(text("UPDATE coupon SET status = 'locked', order_no = 'o-7' WHERE user_id = 'bob'"))
    return until


def test_a_locked_coupon_says_how_long_it_is_locked(sale: Sale) -> None:
    """In the page and alone, by the order that holds it; past its own validity too."""
    until = lock_bobs(sale)
    later = replace(sale.services, clock=lambda: sale.services.clock() + timedelta(days=8))

    for services in (sale.services, later):
        (shown,) = read_wallet(services, "bob", limit=5).items
        alone = read_coupon(services, "bob", int(shown["coupon_no"]))
        assert alone is not None
        for coupon in (shown, alone):
            assert ("locked", "o-7", rfc3339(until)) == tuple(
                coupon[name] for name in ("status", "order_no", "locked_until")
            )


def test_a_lock_that_is_over_says_nothing(sale: Sale) -> None:
    """The order keeps its deadline to tell how late a payment was: it is no lock any more."""
    lock_bobs(sale, "released")
    assert read_wallet(sale.services, "bob", limit=5).items[0]["locked_until"] is None

    with sale.services.engine.begin() as connection:
        connection.execute(text("UPDATE coupon SET status = 'unused' WHERE user_id = 'bob'"))
        connection.execute(text("UPDATE coupon_order SET status = 'locked'"))
    assert read_wallet(sale.services, "bob", limit=5).items[0]["locked_until"] is None


def test_a_page_asks_for_the_orders_of_locked_coupons_alone(sale: Sale) -> None:
    """By their key, in the partition of the user; the page itself comes by the user's coupons."""
    with sale.services.engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version,
                                    valid_from, valid_to, source, claimed_at, status, order_no)
                SELECT 'dan', n, 7001, n, 'm' || n, 1, now(), now() + interval '1 day', 'claim', now(),
                       CASE n WHEN 3000 THEN 'locked' ELSE 'redeemed' END, 'o-' || n
                  FROM generate_series(1, 3000) AS n
            """)
        )
        connection.execute(text("ANALYZE coupon"))
        arguments = {
            "user_id": "dan", "now": sale.services.clock(), "before": 2**62, "status": None, "expiring_before": None,
            "limit": 51,
        }  # fmt: skip
        wallet._PAGE.rows(connection, arguments)
        explain = f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {wallet._PAGE.call}"
        plan = list(connection.exec_driver_sql(explain, arguments).scalars())

    (orders,) = (line for line in plan if "coupon_order" in line)
    (coupons,) = (line for line in plan if "Scan" in line and " on coupon_p" in line)
    assert "Index Scan using coupon_order_p" in orders and "loops=1)" in orders
    assert "Index Scan" in coupons and "rows=51" in coupons
