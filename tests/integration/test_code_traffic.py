"""Codes are exchanged while Redis loses everything, again and again (DESIGN 3.3, 3.4; CASES 29)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coupon_workers.codes.exchange import Exchanged
from coupon_workers.errors import Conflict
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.services import Services
from tests.support.code_batch import hand_out_codes
from tests.support.gift import at_once
from tests.support.sale import assert_sound, open_sale

CODES, USERS, LOSSES = 60, 12, 4


@pytest.mark.parametrize("per_user_limit", [2, 10])
def test_an_emptied_redis_uses_no_code_twice_and_forgets_nobodys_coupons(
    services: Services, per_user_limit: int
) -> None:
    """With claims, settling and rebuilds beside them: each code is one coupon or unused, limits hold, the gate counts
    what everybody has. Guesses that were counted may be lost: right codes are none."""
    wide = replace(services, engine=make_engine(services.settings, pool_size=40))
    sale = open_sale(wide, total_quantity=200, per_user_limit=per_user_limit)
    desk = hand_out_codes(sale, CODES)

    def lose_everything() -> None:
        wide.redis.flushall()
        sale.preheat()

    heard = at_once(
        *[lambda n=n: desk.exchange(desk.codes[n], f"u-{n % USERS}", f"r{n}") for n in range(CODES)],
        *[lambda n=n: sale.claim(f"u-{n % USERS}", f"c{n}") for n in range(30)],
        *[lose_everything] * LOSSES,
        *[sale.drain] * 4,
    )
    sale.preheat()
    sale.drain()

    used = [each.coupon_id for each in heard if isinstance(each, Exchanged)]
    assert len(used) == len(set(used)) == desk.books["used_count"]
    assert {"LIMIT_REACHED"} >= {each.code for each in heard if isinstance(each, Conflict)}
    assert_sound(wide)
    wide.engine.dispose()


def test_an_exchange_sent_again_after_redis_was_emptied_is_the_same(services: Services) -> None:
    """Nothing of it is in Redis alone."""
    sale = open_sale(services, total_quantity=10, per_user_limit=1)
    desk = hand_out_codes(sale, 2)
    first = desk.exchange(desk.codes[0], "u-1")

    services.redis.flushall()
    again = desk.exchange(desk.codes[0], "u-1")
    sale.preheat()

    assert (first.coupon_id, True) == (again.coupon_id, again.replayed)
    assert 1 == desk.books["used_count"]
    assert_sound(services)
