"""What a template's coupons have cost: redemptions less what refunds took back."""

from __future__ import annotations

from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_reading import read_stats
from tests.support.order_shop import OrderShop


def test_the_cost_of_a_template_is_what_its_coupons_took_off_less_refunds(services: Services) -> None:
    """Two orders, of which one is returned in part and another template's coupon is none of it."""
    shop = OrderShop(services)
    template, other = shop.template(), shop.template()
    for number, owner in enumerate((template, template, other)):
        shop.pay_directly(f"o{number}", [shop.issue(owner)])
    refunded = shop.refund("o0", "r1", [("1", 1)])

    stats = read_stats(shop.services, template)

    assert 2 * 2_000 - refunded["discount_reversed"] == stats.discount
    assert (2, "CNY") == (stats.redeemed, stats.currency)
    assert 0 < refunded["discount_reversed"] < 2_000
