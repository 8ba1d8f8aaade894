"""Giving a coupon away: one ends, another is issued, both or neither, once (API.md, Wallet; DESIGN 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from freezegun import freeze_time
from pydantic import SecretStr
from sqlalchemy import text

from coupon_workers.checking.report import check_all
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.coupons.transfer import Transfer, transfer_coupon
from coupon_workers.errors import Conflict
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.services import Services
from coupon_workers.templates.local_day import local_day_number
from coupon_workers.wallet.wallet import read_coupon, read_wallet
from coupon_workers.wallet.wallet_front import first_page
from tests.support.gift import OPERATOR, Refusal, at_once, coupon_row, events, flow, give, refusal
from tests.support.order_shop import OrderShop
from tests.support.sale import Sale, assert_sound, open_sale


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units of a template whose coupons may be given away; one for each user."""
    return open_sale(services, transferable=True, per_user_limit=1)


def issued(sale: Sale, user: str, request: str = "r1") -> int:
    """A coupon of the user; its number."""
    claim_id = sale.claim(user, request).claim_id
    sale.drain()
    return claim_id


def change(sale: Sale, coupon_id: int, assignments: str) -> None:
    """Move a coupon behind everybody's back."""
    with sale.services.engine.begin() as connection:
        connection.execute(text(f"UPDATE coupon SET {assignments} WHERE coupon_id = {coupon_id}"))


def test_the_receiver_gets_a_coupon_of_the_same_worth(sale: Sale) -> None:
    """Same template and version, face value and validity; its own number, claimed at this moment."""
    coupon_id = issued(sale, "ann")
    change(sale, coupon_id, "face_value_minor = 1234, template_version = 7")
    before = coupon_row(sale, coupon_id)
    now = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)

    with freeze_time(now):
        received = give(sale.services, "ann", coupon_id, "bob")

    kept = ("template_id", "template_version", "face_value_minor", "valid_from", "valid_to")
    expected = {name: before[name] for name in kept} | {
        "user_id": "bob", "batch_no": "transfer", "claim_seq": received, "request_id": f"transfer\t{coupon_id}",
        "status": "unused", "version": 1, "order_no": None, "source": "transfer", "claimed_at": now,
    }  # fmt: skip
    assert received != coupon_id
    assert expected == coupon_row(sale, received)


def test_both_histories_tell_of_it(sale: Sale) -> None:
    """With whoever triggered it; the events go out with the change, and the two coupons are linked."""
    coupon_id = issued(sale, "ann")

    received = give(sale.services, "ann", coupon_id, "bob")

    assert (2, "transfer", "unused", "transferred", OPERATOR) == flow(sale, coupon_id)[-1]
    assert [(1, "issue", None, "unused", "transfer")] == flow(sale, received)
    assert [("ann", coupon_id)] == events(sale, "coupon.transferred")
    assert [("ann", coupon_id), ("bob", received)] == events(sale, "coupon.issued")
    link = sale.rows("SELECT user_id, coupon_id, to_user_id, to_coupon_id FROM coupon_transfer")
    assert [("ann", coupon_id, "bob", received)] == link
    assert_sound(sale.services)


def test_sent_again_it_is_the_same_transfer(sale: Sale) -> None:
    """To the same receiver, also when his coupon has moved on; to another one it is too late."""
    coupon_id = issued(sale, "ann")
    received = give(sale.services, "ann", coupon_id, "bob")
    give(sale.services, "bob", received, "cat")

    again = give(sale.services, "ann", coupon_id, "bob")

    gone = Refusal("COUPON_NOT_AVAILABLE", (("coupon_status", "transferred"),))
    assert received == again
    assert gone == refusal(lambda: give(sale.services, "ann", coupon_id, "dan"))
    assert [(3,)] == sale.rows("SELECT count(*) FROM coupon")
    assert_sound(sale.services)


def test_a_coupon_may_come_back(sale: Sale) -> None:
    """From ann to bob and to ann again: three coupons, one of them usable."""
    first = issued(sale, "ann")

    third = give(sale.services, "bob", give(sale.services, "ann", first, "bob"), "ann")

    assert {first: "ann", third: "ann"} == {n: user for n, user in sale.coupons().items() if user == "ann"}
    assert [("ann", third)] == sale.rows("SELECT user_id, coupon_id FROM coupon WHERE status = 'unused'")
    assert_sound(sale.services)


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        ("status = 'locked', order_no = 'o-1'", (("coupon_status", "locked"), ("order_no", "o-1"))),
        ("status = 'redeemed', order_no = 'o-1'", (("coupon_status", "redeemed"),)),
        ("status = 'revoked'", (("coupon_status", "revoked"),)),
    ],
)
def test_a_coupon_that_is_not_free_stays(sale: Sale, assignments: str, expected: tuple[tuple[str, str], ...]) -> None:
    """The answer says what has become of it, and which order has locked it."""
    coupon_id = issued(sale, "ann")
    change(sale, coupon_id, assignments)
    before = coupon_row(sale, coupon_id)

    refused = refusal(lambda: give(sale.services, "ann", coupon_id, "bob"))

    assert Refusal("COUPON_NOT_AVAILABLE", expected) == refused
    assert (before, 1) == (coupon_row(sale, coupon_id), len(sale.coupons()))


def test_an_ended_coupon_stays(sale: Sale) -> None:
    """From the first instant after its validity, whether the sweep has come by or not."""
    ends, swept = issued(sale, "ann"), issued(sale, "bob")
    change(sale, swept, "status = 'expired'")
    valid_to = coupon_row(sale, ends)["valid_to"]

    with freeze_time(valid_to):
        refused = [
            refusal(partial(give, sale.services, "ann", ends, "dan")),
            refusal(partial(give, sale.services, "bob", swept, "dan")),
        ]
    with freeze_time(valid_to - timedelta(milliseconds=1)):
        in_time = refusal(lambda: give(sale.services, "ann", ends, "dan"))

    assert [Refusal("EXPIRED"), Refusal("EXPIRED")] == refused
    assert in_time is None


def test_a_coupon_that_is_not_valid_yet_may_be_given(sale: Sale) -> None:
    """Its receiver waits as its giver would have."""
    coupon_id = issued(sale, "ann")
    change(sale, coupon_id, "valid_from = now() + interval '1 day', valid_to = now() + interval '2 days'")

    assert refusal(lambda: give(sale.services, "ann", coupon_id, "bob")) is None


def test_a_template_may_keep_its_coupons_where_they_are(services: Services) -> None:
    """Whatever state the coupon is in."""
    sale = open_sale(services, transferable=False)
    coupon_id = issued(sale, "ann")

    assert Refusal("NOT_TRANSFERABLE") == refusal(lambda: give(services, "ann", coupon_id, "bob"))
    change(sale, coupon_id, "status = 'expired'")
    assert Refusal("NOT_TRANSFERABLE") == refusal(lambda: give(services, "ann", coupon_id, "bob"))


def test_only_its_owner_gives_a_coupon_away_and_not_to_himself(sale: Sale) -> None:
    """Another user's coupon is not found, like one that does not exist."""
    coupon_id = issued(sale, "ann")

    assert Refusal("COUPON_NOT_FOUND") == refusal(lambda: give(sale.services, "bob", coupon_id, "cat"))
    assert Refusal("COUPON_NOT_FOUND") == refusal(lambda: give(sale.services, "ann", 1, "cat"))
    assert Refusal("InvalidInput") == refusal(lambda: give(sale.services, "ann", coupon_id, "ann"))
    assert "unused" == coupon_row(sale, coupon_id)["status"]


def test_of_many_receivers_at_once_one_gets_it(sale: Sale) -> None:
    """The others hear that it is gone."""
    coupon_id = issued(sale, "ann")

    outcomes = at_once(*(partial(give, sale.services, "ann", coupon_id, f"u{n}") for n in range(6)))

    refused = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert [{"coupon_status": "transferred"}] * 5 == [error.evidence for error in refused]
    assert [(2,)] == sale.rows("SELECT count(*) FROM coupon")
    assert_sound(sale.services)


def test_of_one_transfer_sent_many_times_at_once_there_is_one_effect(sale: Sale) -> None:
    """And everybody gets the same answer, also with the number of a request that runs again."""
    coupon_id = issued(sale, "ann")
    wish = Transfer("ann", coupon_id, "bob", sale.services.next_id(0))
    same: list[Callable[[], int]] = [lambda: transfer_coupon(sale.services, wish, operator=OPERATOR)] * 3
    others: list[Callable[[], int]] = [lambda: give(sale.services, "ann", coupon_id, "bob")] * 3

    outcomes = at_once(*same, *others)

    assert 1 == len(set(outcomes))
    assert 2 == len(sale.coupons())
    assert_sound(sale.services)


@pytest.mark.parametrize("number", range(5))
def test_an_order_and_a_gift_at_once_do_not_both_get_it(services: Services, number: int) -> None:
    """The coupon is locked and stays, or is given away and the order hears so; and everything agrees."""
    shop = OrderShop(services)
    coupon_id = shop.issue(shop.template(transferable=True))

    order, gift = at_once(partial(shop.lock, "o1", [coupon_id]), partial(give, shop.services, "ann", coupon_id, "bob"))

    refused = [outcome for outcome in (order, gift) if isinstance(outcome, Conflict)]
    assert 1 == len(refused)
    assert "COUPON_NOT_AVAILABLE" == refused[0].code
    if gift in refused:
        assert {"coupon_status": "locked", "order_no": "o1"} == gift.evidence
        shop.pay("o1")
    assert ("transferred" if order in refused else "redeemed") == shop.status(coupon_id)
    assert_sound(shop.services)


def test_users_who_give_to_one_another_do_not_wait_in_a_circle(services: Services) -> None:
    """Ann to bob while bob to ann, many times over: all arrive."""
    sale = open_sale(services, transferable=True, total_quantity=40)
    anns = [sale.claim("ann", f"r{n}").claim_id for n in range(20)]
    bobs = [sale.claim("bob", f"r{n}").claim_id for n in range(20)]
    sale.drain()

    for ann, bob in zip(anns, bobs, strict=True):
        outcomes = at_once(partial(give, services, "ann", ann, "bob"), partial(give, services, "bob", bob, "ann"))
        assert [] == [outcome for outcome in outcomes if isinstance(outcome, Exception)]

    held = sale.rows("SELECT user_id, status, count(*) FROM coupon GROUP BY 1, 2 ORDER BY 1, 2")
    assert [(user, s, 20) for user in ("ann", "bob") for s in ("transferred", "unused")] == held
    assert_sound(services)


def test_a_gift_is_no_issue_of_its_template(sale: Sale) -> None:
    """All ten are issued and given away: still ten of ten, before and after a rebuild of the gate."""
    users = [f"u{n}" for n in range(10)]
    claims = sale.claim_each(users)
    sale.drain()
    for user, claim_id in zip(users, claims, strict=True):
        give(sale.services, user, claim_id, "collector")

    assert (10, 0) == (sale.books["issued_quantity"], sale.stock)
    assert_sound(sale.services)
    assert 10 == sale.preheat()
    assert (0, None) == (sale.stock, sale.taker("collector"))
    assert_sound(sale.services)


@pytest.mark.parametrize("limits", [{"per_user_limit": 1}, {"per_user_limit": None, "per_user_daily_limit": 1}])
@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_gift_counts_against_its_givers_limit_alone(
    services: Services, limits: dict[str, int], rebuilt: bool
) -> None:
    """Who gave his coupon away gets no second one; who received one may claim his own."""
    sale = open_sale(services, transferable=True, **limits)
    give(services, "ann", issued(sale, "ann"), "bob")
    if rebuilt:
        sale.preheat()

    ann, bob = sale.claim("ann", "r2"), sale.claim("bob")
    sale.drain()

    expected = ClaimOutcome.LIMIT_REACHED if limits["per_user_limit"] else ClaimOutcome.DAILY_LIMIT_REACHED
    assert (expected, ClaimOutcome.ACCEPTED) == (ann.outcome, bob.outcome)
    assert {} == sale.rejections()
    assert Counter({"bob": 2, "ann": 1}) == Counter(sale.coupons().values())
    assert_sound(services)


@pytest.mark.parametrize("limits", [{"per_user_limit": 1}, {"per_user_limit": None, "per_user_daily_limit": 1}])
def test_the_careful_settling_counts_no_gifts_either(services: Services, limits: dict[str, int]) -> None:
    """Redis has lost its memory: ann, who gave her coupon away, is rejected; bob, who received it, is not."""
    sale = open_sale(services, transferable=True, **limits)
    give(services, "ann", issued(sale, "ann"), "bob")
    services.redis.delete(sale.keys.takers, sale.keys.requests)
    services.redis.delete(f"{sale.keys.day_prefix}{local_day_number(services.clock(), 'Asia/Shanghai')}")
    ann, bob = sale.claim("ann", "r2"), sale.claim("bob")
    assert {ClaimOutcome.ACCEPTED} == {ann.outcome, bob.outcome}

    sale.drain()

    assert [ann.claim_id] == list(sale.rejections())
    assert "bob" == sale.coupons()[bob.claim_id]
    assert [(1,)] == sale.rows("SELECT claim_seq FROM coupon WHERE user_id = 'bob' AND source = 'claim'")
    sale.preheat()
    assert_sound(services)


def test_one_issued_coupon_too_many_is_still_seen(sale: Sale) -> None:
    """Leaving gifts out does not blind the checker: the same row as a claim is a breach."""
    received = give(sale.services, "ann", issued(sale, "ann"), "bob")
    change(sale, received, "source = 'claim', claim_seq = 1, batch_no = ''")

    broken = {breach.invariant for breach in check_all(sale.services, patience_s=0).breaches}

    assert {"issued_count", "conservation", "request_memory", "taker_count", "transfer_link"} == broken


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE coupon SET source = 'transfer' WHERE user_id = 'dan'",
        "DELETE FROM coupon_transfer",
        "UPDATE coupon_transfer SET to_user_id = 'cat'",
        "UPDATE coupon_transfer SET coupon_id = coupon_id + 1",
        "INSERT INTO coupon_transfer SELECT user_id, coupon_id, 'bob', 1, now() FROM coupon WHERE user_id = 'dan'",
        "INSERT INTO coupon_transfer SELECT c.user_id, c.coupon_id, l.to_user_id, l.to_coupon_id, now()"
        "  FROM coupon c, coupon_transfer l WHERE c.user_id = 'dan'",
    ],
)
def test_a_coupon_received_from_nowhere_is_seen(sale: Sale, harm: str) -> None:
    """No other rule counts it: a gift that is none would be a coupon too many."""
    give(sale.services, "ann", issued(sale, "ann"), "bob")
    issued(sale, "dan")
    with sale.services.engine.begin() as connection:
        connection.execute(text(harm))

    assert "transfer_link" in {breach.invariant for breach in check_all(sale.services, patience_s=0).breaches}


def test_both_wallets_show_it_at_once(sale: Sale) -> None:
    """Pages that were kept are forgotten."""
    coupon_id = issued(sale, "ann")
    for user in ("ann", "bob"):
        first_page(sale.services, user)

    received = give(sale.services, "ann", coupon_id, "bob")

    anns, bobs = (first_page(sale.services, user)["items"] for user in ("ann", "bob"))
    assert [(str(coupon_id), "transferred")] == [(item["coupon_no"], item["status"]) for item in anns]
    assert [(str(received), "transfer")] == [(item["coupon_no"], item["source"]) for item in bobs]


def test_a_redis_that_is_away_does_not_undo_it(sale: Sale) -> None:
    """The transfer is committed, and its answer says so."""
    coupon_id = issued(sale, "ann")
    settings = sale.services.settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1/0")})
    cut_off = replace(sale.services, redis=make_redis(settings))

    received = give(cut_off, "ann", coupon_id, "bob")

    assert [str(received)] == [coupon["coupon_no"] for coupon in read_wallet(sale.services, "bob", limit=5).items]


def test_its_history_is_for_its_owner(sale: Sale) -> None:
    """The giver still sees the old coupon, and not the new one."""
    coupon_id = issued(sale, "ann")
    received = give(sale.services, "ann", coupon_id, "bob")

    old = read_coupon(sale.services, "ann", coupon_id)

    assert old is not None
    assert ["issue", "transfer"] == [step["action"] for step in old["history"]]
    assert read_coupon(sale.services, "ann", received) is None
