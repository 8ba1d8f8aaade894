"""Old coupons move while others read them, or change what is beside them (DESIGN 3.2, 3.6 and 10)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Event

import pytest

from coupon_workers.claiming.claim_status import claim_status
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.coupons import archive
from coupon_workers.errors import Conflict
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_change import patch_template
from coupon_workers.wallet.wallet import read_coupon
from tests.support.archiving import LONG_AFTER, ArchiveShop
from tests.support.gift import at_once
from tests.support.order_shop import START
from tests.support.sale import assert_sound


@pytest.fixture
def shop(services: Services, monkeypatch: pytest.MonkeyPatch) -> ArchiveShop:
    """A shop on its first day, whose archiver takes two coupons at a time."""
    monkeypatch.setattr(archive, "CHUNK", 2)
    return ArchiveShop(services)


def test_a_coupon_on_its_way_is_read_whole_at_every_moment(shop: ArchiveShop) -> None:
    """By whoever asks for the claim, or for the coupon with its history."""
    template = shop.template()
    coupons = [shop.ended(template) for _ in range(30)]
    shop.expire()
    shop.clock.now = LONG_AFTER
    done = Event()

    def move() -> int:
        moved = shop.archive()
        done.set()
        return moved

    def read(look: Callable[[int], bool]) -> int:
        missed = 0
        while not done.is_set():
            missed += sum(not look(coupon) for coupon in coupons)
        return missed

    outcomes = at_once(
        move,
        partial(read, lambda coupon: claim_status(shop.services, coupon) is not None),
        partial(read, lambda coupon: _steps(shop, coupon) == 2),
    )

    assert [30, 0, 0] == outcomes


def _steps(shop: ArchiveShop, coupon: int) -> int:
    shown = read_coupon(shop.services, shop.user, coupon)
    return len(shown["history"]) if shown else 0


def test_refunds_transfers_and_the_sweep_go_on_beside_it(shop: ArchiveShop) -> None:
    """Late ones, of the same template: what moves is over for good, and what they touch stays or follows later."""
    template = shop.template(transferable=True)
    good = {"valid_to": LONG_AFTER + timedelta(days=1)}
    sold, given, late = ([shop.issue(template, **good) for _ in range(6)] for _ in range(3))
    old = [shop.ended(template) for _ in range(12)]
    for number, coupon in enumerate(sold):
        shop.pay_directly(f"o{number}", [coupon], payment=f"pay-{number}")
    shop.expire()
    shop.clock.now = LONG_AFTER
    shop.execute("UPDATE coupon SET valid_to = :now WHERE coupon_id = ANY(:late)", now=LONG_AFTER, late=late)

    outcomes = at_once(
        shop.archive,
        shop.archive,
        lambda: [shop.refund(f"o{number}", f"ref-{number}") for number in range(6)],
        lambda: [shop.give(coupon, "bob") for coupon in given],
        lambda: super(ArchiveShop, shop).expire(),
    )

    assert [] == [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert set(old) == shop.archived()
    assert_sound(shop.services)


def test_a_template_is_put_off_or_archived_whichever_comes_first(shop: ArchiveShop) -> None:
    """Ten times at once: never both."""
    for _ in range(10):
        template = shop.template()
        shop.ended(template)
        shop.expire()
        shop.clock.now = LONG_AFTER
        later = {"claim_end": (LONG_AFTER + timedelta(days=1)).isoformat()}

        patched, moved = at_once(partial(patch_template, shop.services, template, later), shop.archive)

        put_off = not isinstance(patched, Conflict)
        assert put_off == (moved == 0), (patched, moved)
        assert put_off or patched.code == "HAS_ARCHIVED"
        shop.clock.now = START
    assert_sound(shop.services)


def test_a_preheat_and_the_archiver_take_turns(shop: ArchiveShop) -> None:
    """Ten times at once: a gate that was rebuilt knows whom it counts, or there is none."""
    for _ in range(10):
        template = shop.template(per_user_limit=1)
        shop.ended(template, "u1")
        shop.expire()
        shop.clock.now = LONG_AFTER

        outcomes = at_once(partial(preheat_template, shop.services, template), shop.archive)

        assert outcomes[0] == 1 or getattr(outcomes[0], "code", "") == "HAS_ARCHIVED", outcomes
        shop.archive()
        assert (1, 1, 0) == shop.counters(template)
        assert_sound(shop.services)
        shop.clock.now = START
