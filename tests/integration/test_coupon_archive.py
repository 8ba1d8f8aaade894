"""Old coupons move out of the way with their history: those that are over for good, once, and no other (DESIGN 10)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from coupon_workers.coupons import archive, archive_sql
from coupon_workers.coupons.archive import archive_coupons
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import archive_coupons as archive_coupons_task
from tests.conftest import PostBox
from tests.support.archiving import AFTER, LONG_AFTER, ArchiveShop
from tests.support.crash import dies_at
from tests.support.gift import at_once
from tests.support.order_shop import START
from tests.support.sale import assert_sound

MOMENT = timedelta(microseconds=1)
POINTS = ["archive.before_commit", "archive.after_commit"]


@pytest.fixture
def shop(services: Services) -> ArchiveShop:
    """A shop on its first day."""
    return ArchiveShop(services)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three coupons a transaction."""
    monkeypatch.setattr(archive, "CHUNK", 3)


def _many(shop: ArchiveShop, count: int = 10) -> int:
    """A template of so many expired coupons, each user's own; all are old now."""
    template = shop.template()
    for number in range(count):
        shop.ended(template, f"u{number}")
    shop.expire()
    shop.clock.now = LONG_AFTER
    return template


def test_what_ended_without_an_order_moves_with_its_history(shop: ArchiveShop) -> None:
    """Expired, revoked, given away and received coupons; every column and every step as it was."""
    template = shop.template(transferable=True)
    expired, revoked, given = (shop.ended(template) for _ in range(3))
    shop.revoke(revoked)
    received = shop.give(given, "bob")
    shop.expire()
    coupons = shop.rows("SELECT * FROM coupon ORDER BY coupon_id")
    steps = shop.rows("SELECT * FROM coupon_flow ORDER BY coupon_id, flow_no")
    shop.clock.now = LONG_AFTER

    moved = shop.archive()

    assert (4, {expired, revoked, given, received}) == (moved, shop.archived())
    assert [(*row, LONG_AFTER) for row in coupons] == shop.rows("SELECT * FROM coupon_archive ORDER BY coupon_id")
    assert [(*row, LONG_AFTER) for row in steps] == shop.rows(
        "SELECT * FROM coupon_flow_archive ORDER BY coupon_id, flow_no"
    )
    assert (set(), [(0,)]) == (shop.living(), shop.rows("SELECT count(*) FROM coupon_flow"))
    assert (3, 3, 0) == shop.counters(template)  # the received one is no issue
    assert_sound(shop.services)


def test_what_was_ever_on_an_order_stays_with_it(shop: ArchiveShop) -> None:
    """Redeemed, returned, or only locked for a while and let go: money stays."""
    template = shop.template()
    redeemed, returned, let_go, never = (shop.issue(template) for _ in range(4))
    shop.pay_directly("o1", [redeemed])
    shop.pay_directly("o2", [returned], payment="pay-2")
    shop.refund("o2", "ref-1")
    shop.lock("o3", [let_go])
    shop.release("o3")
    shop.clock.pass_by(days=8)
    shop.expire()
    shop.clock.now = LONG_AFTER

    shop.archive()

    assert ({never}, {redeemed, returned, let_go}) == (shop.archived(), shop.living())
    assert_sound(shop.services)


def test_what_may_still_be_used_stays(shop: ArchiveShop) -> None:
    """Unused ones, however old; also one whose end the sweep has not come by yet."""
    template = shop.template()
    unused = shop.issue(template, valid_to=LONG_AFTER + timedelta(days=1))
    overdue = shop.issue(template)
    shop.clock.now = LONG_AFTER

    assert 0 == shop.archive()

    assert {unused, overdue} == shop.living()


def test_a_coupon_is_archived_so_many_days_after_its_last_change(shop: ArchiveShop) -> None:
    """And not a moment before."""
    template = shop.template(claim_end=START)
    coupon = shop.ended(template)
    shop.expire()
    changed = shop.clock.now

    shop.clock.now = changed + AFTER - MOMENT
    early = shop.archive()
    shop.clock.now = changed + AFTER + archive.REST
    late = shop.archive()

    assert (0, 1, {coupon}) == (early, late, shop.archived())


@pytest.mark.parametrize(
    "columns",
    [
        {"claim_end": LONG_AFTER - AFTER + MOMENT},
        {"updated_at": LONG_AFTER - archive.REST + MOMENT},
        {"reserved_quantity": 1},
    ],
    ids=["claimed until lately", "changed lately", "units set aside"],
)
def test_a_template_that_is_not_over_for_good_keeps_its_coupons(shop: ArchiveShop, columns: dict[str, object]) -> None:
    """Their users' limits are still counted by them, or may come to be."""
    template = shop.template(**columns)
    shop.ended(template)
    shop.expire()
    shop.clock.now = LONG_AFTER

    assert 0 == shop.archive()


def test_the_setting_says_how_old_and_whether_at_all(shop: ArchiveShop) -> None:
    """0: never. Fewer days than thirty are refused (tests/unit)."""
    template = _many(shop, 2)
    never = shop.services.settings.model_copy(update={"archive_after_days": 0})

    assert 0 == archive_coupons(replace(shop.services, settings=never), LONG_AFTER)
    assert (2, 0, 0) == shop.counters(template)


@pytest.mark.usefixtures("small_chunks")
def test_chunk_after_chunk_until_nothing_is_left(shop: ArchiveShop, post: PostBox) -> None:
    """Nothing is left out or moved twice, no follow-up is sent, and the next turn finds nothing."""
    template = _many(shop)
    kept = shop.issue(template, valid_to=LONG_AFTER + timedelta(days=1))
    post.sent.clear()

    assert (10, 0) == (shop.archive(), shop.archive())

    assert ([], {kept}, (11, 10, 0)) == (post.sent, shop.living(), shop.counters(template))
    assert_sound(shop.services)


@pytest.mark.usefixtures("small_chunks")
def test_a_turn_that_is_over_hands_the_rest_on(shop: ArchiveShop, post: PostBox) -> None:
    """To one follow-up, which goes on where the turn has stopped."""
    _many(shop)
    post.sent.clear()

    first = shop.archive(turn_s=-1)
    [(cursor,)] = shop.rows("SELECT cursor FROM archive_pass")

    assert (3, [archive_coupons_task()], max(shop.archived())) == (first, post.sent, cursor)
    assert_sound(shop.services)
    assert 7 == shop.archive()


@pytest.mark.usefixtures("small_chunks")
def test_archivers_at_once_share_the_work(shop: ArchiveShop) -> None:
    """Each coupon is moved by one of them."""
    for _ in range(4):
        _many(shop, 7)
        shop.clock.now = START
    shop.clock.now = LONG_AFTER

    outcomes = at_once(*[shop.archive] * 4)

    assert 28 == sum(outcomes) + shop.archive()
    assert_sound(shop.services)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_dies_leaves_whole_coupons(
    shop: ArchiveShop, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Before the commit nothing has moved, after it a chunk with its history and its counters."""
    template = _many(shop)

    with dies_at(monkeypatch, point):
        shop.archive()

    moved = 3 if point == "archive.after_commit" else 0
    assert (10, moved, 0) == shop.counters(template)
    assert_sound(shop.services)
    assert 10 - moved == shop.archive()
    assert_sound(shop.services)


def test_a_coupon_in_other_hands_holds_nobody_up(shop: ArchiveShop) -> None:
    """It is stepped around, and goes with the next pass."""
    template = _many(shop, 3)

    with shop.services.engine.begin() as connection:
        connection.execute(text("SELECT FROM coupon WHERE user_id = 'u0' FOR UPDATE"))
        beside = shop.archive()
    soon = shop.archive()
    shop.clock.now += archive.REST

    assert (2, 0, 1) == (beside, soon, shop.archive())
    assert (3, 3, 0) == shop.counters(template)


def test_a_template_in_other_hands_is_left_alone(shop: ArchiveShop) -> None:
    """Whoever changes it decides first; settling and preheats hold its bucket."""
    template = _many(shop, 1)

    with shop.services.engine.begin() as connection:
        connection.execute(text("SELECT FROM coupon_template FOR UPDATE"))
        changed = shop.archive()
    with shop.services.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": template})
        settled = shop.archive()

    assert (0, 0, 1) == (changed, settled, shop.archive())


def test_a_template_is_read_again_when_something_of_it_has_grown_old(shop: ArchiveShop) -> None:
    """Not every day: what stays for good would be read for nothing."""
    template = shop.template()
    shop.pay_directly("o1", [shop.issue(template)])
    unused = shop.issue(template, valid_to=LONG_AFTER + timedelta(days=1))
    first = shop.ended(template)
    shop.expire()
    shop.clock.now = LONG_AFTER
    assert {first} == (shop.archive() and shop.archived())

    shop.clock.pass_by(days=2)
    shop.expire()
    shop.clock.now = LONG_AFTER + AFTER - MOMENT
    early = shop.rows(archive_due(shop))
    shop.clock.now = LONG_AFTER + timedelta(days=2, minutes=5) + AFTER
    late = shop.archive()

    assert ([], 1, {first, unused}) == (early, late, shop.archived())
    assert_sound(shop.services)


def archive_due(shop: ArchiveShop) -> str:
    """The question for templates that are due at the shop's time."""
    arguments = {
        "before": f"timestamptz '{shop.clock.now - AFTER}'",
        "unchanged_since": f"timestamptz '{shop.clock.now - archive.REST}'",
        "most": "10",
    }
    statement = archive_sql.DUE.text
    for name, value in arguments.items():
        statement = statement.replace(f":{name}", value)
    return statement
