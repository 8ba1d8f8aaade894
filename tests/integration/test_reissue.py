"""A coupon given by hand, beside all that goes on: kills, other operators, claims, a lost Redis, age, money."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest

from coupon_workers.claiming.gate_sweep import sweep_gates
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.coupons import reissue as reissuing
from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.coupons.reissue import Reissued, reissue_coupon
from coupon_workers.coupons.revocation import ask_revocation, perform_revocation
from coupon_workers.coupons.single_revocation import revoke_coupon
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import settle_claims
from tests.conftest import PostBox
from tests.support.archiving import LONG_AFTER, ArchiveShop
from tests.support.closing import ClosingShop, by_template
from tests.support.gift import Refusal, at_once, refusal
from tests.support.order_books import nothing_written
from tests.support.reissuing import OPERATOR, assert_in_order, killed_at, reissue, wish
from tests.support.sale import Sale, assert_sound, open_sale

POINTS = ["reissue.before_commit", "reissue.after_commit"]


def claimed(sale: Sale, user: str = "ann", request: str = "r1") -> int:
    """A coupon that was claimed; its number."""
    [coupon_id] = sale.claim_each([user], request)
    sale.drain()
    return coupon_id


@pytest.mark.parametrize("restock", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_a_process_that_is_killed_leaves_all_of_it_or_nothing(services: Services, point: str, restock: bool) -> None:
    """The caller's own retry is the same coupon; the gate hears of its unit from the sweep if from nobody else."""
    sale = open_sale(services, total_quantity=5, restock_on_revoke=restock)
    old = claimed(sale)
    asked = wish(sale.template_id, in_place_of=old)

    killed = killed_at(services.settings, point, asked)
    committed = len(sale.coupons()) == 2
    again = reissue_coupon(services, asked, OPERATOR)
    with nothing_written(services):
        once_more = reissue_coupon(services, asked, OPERATOR)
    sweep_gates(services)

    assert -signal.SIGKILL == killed
    assert (point == "reissue.after_commit") == committed == again.replayed
    assert Reissued(again.coupon_id, replayed=True) == once_more
    assert {old, again.coupon_id} == set(sale.coupons())
    assert (5 - 1 - (not restock)) == sale.stock
    assert [(1,)] == sale.rows("SELECT count(*) FROM audit_log WHERE action = 'coupon.reissue'")
    assert_in_order(sale)


def test_two_operators_replace_a_coupon_once(services: Services) -> None:
    """Each by a request of his own, at the same moment: one does it, and the others hear by which coupon."""
    sale = open_sale(services, total_quantity=9, restock_on_revoke=True)
    old = claimed(sale)

    heard = at_once(
        *[lambda n=n: reissue(services, sale.template_id, "ann", f"ticket-{n}", old) for n in range(5)],
    )

    [made] = [each for each in heard if isinstance(each, Reissued)]
    others = [(each.code, each.evidence) for each in heard if each != made]
    assert [("ALREADY_REPLACED", {"coupon_no": str(made.coupon_id)})] * 4 == others
    assert (2, 8) == (len(sale.coupons()), sale.stock)
    assert_in_order(sale)


def test_operators_who_replace_coupons_crosswise_do_not_hold_one_another_up(services: Services) -> None:
    """Ann's of one template by the other, Bob's the other way round: a deadlock would be an error."""
    one, two = (
        open_sale(services, template_id=number, total_quantity=60, restock_on_revoke=True) for number in (7001, 7002)
    )
    users = [f"u-{n}" for n in range(6)]
    owned = {user: claimed((one, two)[n % 2], user) for n, user in enumerate(users)}

    for round_no in range(4):
        wishes = [
            wish((two, one)[(n + round_no) % 2].template_id, user, f"t-{round_no}", owned[user])
            for n, user in enumerate(users)
        ]
        heard = at_once(*[lambda asked=asked: reissue_coupon(services, asked, OPERATOR) for asked in wishes])
        assert {Reissued} == {type(each) for each in heard}, heard
        owned = {user: made.coupon_id for user, made in zip(users, heard, strict=True)}

    assert (57, 57) == (one.stock, two.stock)
    assert_in_order(one, two)


def test_a_coupon_is_revoked_or_replaced(services: Services) -> None:
    """At the same moment: its unit goes back once, whoever is first."""
    sale = open_sale(services, total_quantity=20, restock_on_revoke=True)
    owned = {f"u-{n}": claimed(sale, f"u-{n}") for n in range(4)}

    heard = at_once(
        *[lambda u=u, c=c: reissue(services, sale.template_id, u, "t-1", c) for u, c in owned.items()],
        *[lambda u=u, c=c: revoke_coupon(services, u, c, "x", "k2") for u, c in owned.items()],
    )

    assert [] == [each for each in heard if isinstance(each, Exception)]
    assert [("revoked", 4), ("unused", 4)] == sale.rows("SELECT status, count(*) FROM coupon GROUP BY 1 ORDER BY 1")
    assert 16 == sale.stock
    assert_in_order(sale)


def test_claims_and_coupons_by_hand_share_the_last_units(services: Services) -> None:
    """Never more coupons than units; whoever was accepted has one or a reason."""
    sale = open_sale(services, total_quantity=6)

    heard = at_once(
        *[lambda n=n: reissue(services, sale.template_id, f"u-{n}", "t-1") for n in range(5)],
        *[lambda n=n: sale.claim(f"u-{n}") for n in range(8)],
        *[sale.drain] * 3,
    )
    sale.drain()

    assert {"SOLD_OUT"} >= {each.code for each in heard if isinstance(each, Exception)}
    assert 6 == len(sale.coupons())
    assert {"SOLD_OUT"} >= set(sale.rejections().values())
    assert 0 == sale.stock
    assert_in_order(sale)


def test_a_settling_that_met_it_is_called_back(
    services: Services, post: PostBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims that came meanwhile do not wait for the sweep to miss them."""
    sale = open_sale(services, total_quantity=6)
    sale.claim("bob")
    left: list[int] = []
    meet = {"reissue.before_commit": lambda: left.append(sale.drain())}
    monkeypatch.setattr(reissuing, "crash_point", lambda name: meet.get(name, int)())

    reissue(services, sale.template_id)

    assert ([0], 1) == (left, sale.queued)
    assert [settle_claims(sale.template_id, 0)] == post.sent
    sale.drain()
    assert_in_order(sale)


def test_after_a_lost_redis_the_gate_knows_of_it(services: Services) -> None:
    """Its unit is gone, and its owner may claim as many as everybody, and no more."""
    sale = open_sale(services, total_quantity=4, per_user_limit=1)
    reissue(services, sale.template_id)
    reissue(services, sale.template_id, "bob", "t-1", claimed(sale, "bob"))
    services.redis.flushdb()
    reissue(services, sale.template_id, "eve")  # by the books alone

    sale.preheat()

    assert ["ann", "bob", "bob", "eve"] == sorted(sale.coupons().values())
    assert ("1 1", None) == (sale.taker("bob"), sale.taker("ann"))
    assert ClaimOutcome.SOLD_OUT == sale.claim("ann").outcome
    assert ClaimOutcome.LIMIT_REACHED == sale.claim("bob", "r2").outcome
    assert_in_order(sale)


def test_it_ends_as_any_coupon_ends(services: Services) -> None:
    """Recalled with its template, or expired; what has ended may be replaced."""
    sale = open_sale(services, total_quantity=9, restock_on_revoke=True)
    recalled = reissue(services, sale.template_id).coupon_id
    recall = ask_revocation(services, sale.template_id, services.next_id(0), "x", "k1")
    perform_revocation(services, recall["revocation_id"])
    expired = reissue(services, sale.template_id, "ann", "t-2", recalled).coupon_id
    expire_coupons(services, services.clock() + timedelta(days=8))

    last = reissue(services, sale.template_id, "ann", "t-3", expired).coupon_id

    assert [(recalled, "revoked"), (expired, "expired"), (last, "unused")] == sorted(
        sale.rows("SELECT coupon_id, status FROM coupon")
    )
    assert 9 - 2 == sale.stock
    assert_in_order(sale)


def test_in_the_archive_it_counts_and_its_request_is_remembered(services: Services) -> None:
    """As a coupon of a batch does; another takes neither its request nor its place."""
    shop = ArchiveShop(services)
    template_id, other = shop.template(), shop.template(claim_end=LONG_AFTER + timedelta(days=1))
    old = reissue(shop.services, template_id).coupon_id
    asked = wish(template_id, "ann", "ticket-2", old)
    new = reissue_coupon(shop.services, asked, OPERATOR).coupon_id
    shop.execute("UPDATE coupon_template SET updated_at = claim_start")
    shop.clock.pass_by(days=8)
    shop.expire()
    shop.clock.now = LONG_AFTER

    moved = shop.archive()

    assert (2, {old, new}) == (moved, shop.archived())
    assert (2, 2, 2) == shop.counters(template_id)
    assert Reissued(new, replayed=True) == reissue_coupon(shop.services, asked, OPERATOR)
    twice = refusal(lambda: reissue(shop.services, other, "ann", "ticket-3", old))
    assert Refusal("ALREADY_REPLACED", (("coupon_no", str(new)),)) == twice
    full = refusal(lambda: reissue(shop.services, template_id, "ann", "ticket-4"))
    assert Refusal("HAS_ARCHIVED", (("archived", 2),)) == full
    reissue(shop.services, other, "ann", "ticket-5", new)
    assert_sound(services)


def test_its_money_is_that_of_any_coupon(services: Services) -> None:
    """Bookings and the day's close, to the unit: issued, redeemed, part of it returned, adjusted."""
    shop = ClosingShop(services).at("2026-11-11T12:00+08:00")
    twins = [shop.template(claim_start=shop.clock.now - timedelta(days=1)) for _ in range(2)]
    coupons = [shop.issue(twins[0]), reissue(shop.services, twins[1]).coupon_id]
    for number, coupon_id in enumerate(coupons):
        shop.lock(f"o{number}", [coupon_id])
        shop.pay(f"o{number}", f"pay-{number}")
        shop.refund(f"o{number}", f"r-{number}", [("2", 1)])
        shop.adjust(f"a-{number}", coupon_id, -100, f"o{number}")
    shop.issue(twins[0], "bob")
    reissue(shop.services, twins[1], "bob")

    closed = by_template(shop.at("2026-11-20T12:00+08:00").close("2026-11-11"))
    ledger = shop.rows("SELECT template_id, kind, debit_account, credit_account, amount_minor FROM ledger_entry")

    assert closed[twins[0]] == closed[twins[1]]
    assert 2 == closed[twins[1]][0][0]
    booked = [sorted(row[1:] for row in ledger if row[0] == template_id) for template_id in twins]
    assert booked[0] == booked[1] != []
    assert_sound(services)
