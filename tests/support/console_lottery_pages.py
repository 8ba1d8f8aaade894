"""The console's pages of lotteries with something to see on them."""

from __future__ import annotations

from datetime import timedelta

from coupon_workers.runtime.clock import utc_now
from tests.support.http_shop import Shop
from tests.support.lottery import Fair, coupon_prize, open_lottery, thanks


def lotteries_page(shop: Shop) -> str:
    """One that runs, one that begins tomorrow, one that is paused."""
    lottery_page(shop)
    open_lottery(shop.services, [thanks()], name="Tomorrow", start=utc_now() + timedelta(days=1))
    open_lottery(shop.services, [thanks()], name="春节转盘").pause()
    return "/lotteries"


def lottery_page(shop: Shop) -> str:
    """One that runs, with winners, and a prize that is used up."""
    template_id = int(shop.desk.open(name="满100减20 双十一", total_quantity=90))
    prizes = [coupon_prize(template_id, 40, 200_000), coupon_prize(template_id, 2, 100_000, "双倍"), thanks(700_000)]
    fair = open_lottery(shop.services, prizes, name="Double Eleven wheel", per_user_limit=3)
    for number in range(60):
        fair.draw(f"u-{number}", number=number * 16_000)
    fair.drain()
    return f"/lotteries/{fair.lottery_id}"


def new_lottery_page(shop: Shop) -> str:
    """With a template to choose."""
    shop.desk.open(name="满100减20 双十一")
    return "/lotteries/new"


def edit_lottery_page(shop: Shop) -> str:
    """One that is paused, with winners."""
    address = lottery_page(shop)
    Fair(shop.services, int(address.rpartition("/")[2])).pause()
    return f"{address}/edit"
