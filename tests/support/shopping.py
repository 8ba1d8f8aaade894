"""Orders and coupons for the tests of the discount engine: by hand, and drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from coupon_workers.orders.coupon_rule import CouponRule, IdSet
from coupon_workers.orders.discount import Discounts, apply_coupons
from coupon_workers.orders.order import OrderBody

NOW = datetime(2026, 11, 11, tzinfo=UTC)
DAY = timedelta(days=1)
CATEGORIES = ("c1", "c2", "c3")


def order_of(amounts: Sequence[int], **fields: Any) -> OrderBody:
    """An order in CNY with a line of one piece for each amount: line "1" of product "p1", and so on."""
    lines = [
        {"line_id": str(number), "product_id": f"p{number}", "unit_price": amount, "quantity": 1}
        for number, amount in enumerate(amounts, start=1)
    ]
    return OrderBody.model_validate({"user_id": "u-1", "currency": "CNY", "lines": lines} | fields)


def coupon(coupon_id: int = 1, **terms: Any) -> CouponRule:
    """A coupon for everything that holds for a day around ``NOW``: cash of ``amount_minor``, or percent off."""
    kind = "percent_off" if "percent_off_bp" in terms else "cash"
    fields: dict[str, Any] = {
        "template_id": coupon_id,
        "type": kind,
        "currency": "CNY",
        "valid_from": NOW - DAY,
        "valid_to": NOW + DAY,
    }
    return CouponRule(coupon_id=coupon_id, **(fields | terms))


def ids(*include: str, exclude: Sequence[str] = ()) -> IdSet:
    """A filter of a scope."""
    return IdSet(frozenset(include), frozenset(exclude))


@st.composite
def carts(draw: st.DrawFn, max_lines: int = 6, max_price: int = 3_000) -> OrderBody:
    """Small orders; prices of 0 and of a few units among them, where rounding matters most."""
    price = st.one_of(st.integers(0, 9), st.integers(0, max_price))
    line = st.tuples(price, st.integers(1, 3), st.sampled_from(CATEGORIES))
    lines = [
        {"line_id": str(n), "product_id": f"p{n}", "category_id": category, "unit_price": unit, "quantity": quantity}
        for n, (unit, quantity, category) in enumerate(draw(st.lists(line, min_size=1, max_size=max_lines)))
    ]
    return OrderBody.model_validate({"user_id": "u-1", "currency": "CNY", "lines": lines})


@st.composite
def rules(draw: st.DrawFn, coupon_id: int, exclusive: bool | None = None) -> CouponRule:
    """Any coupon that holds now; few templates, so that some coupons are alike."""
    template = draw(st.integers(1, 4))
    return coupon(
        coupon_id,
        template_id=template,
        threshold_minor=draw(st.sampled_from((0, 0, 1, 500, 4_000))),
        categories=draw(st.sampled_from((IdSet(), IdSet(), ids("c1"), ids("c1", "c2"), ids(exclude=["c2"])))),
        exclusive=draw(st.integers(0, 9)) == 0 if exclusive is None else exclusive,
        group=draw(st.sampled_from((None, None, "a", "b"))),
        priority=draw(st.sampled_from((100, 100, 50, 150))),
        valid_to=NOW + DAY * draw(st.integers(1, 3)),
        **draw(st.one_of(amounts_off(), percents_off())),
    )


def amounts_off() -> st.SearchStrategy[dict[str, Any]]:
    """The terms of a coupon of a fixed amount."""
    return st.one_of(st.integers(1, 20), st.integers(1, 2_000)).map(lambda amount: {"amount_minor": amount})


def percents_off() -> st.SearchStrategy[dict[str, Any]]:
    """The terms of a coupon of a percentage, capped or not."""
    return st.builds(
        lambda percent, cap: {"percent_off_bp": percent, "max_discount_minor": cap},
        st.one_of(st.sampled_from((1, 1_000, 3_333, 5_000, 10_000)), st.integers(1, 10_000)),
        st.one_of(st.none(), st.integers(1, 500)),
    )


@st.composite
def wallets(draw: st.DrawFn, max_size: int, exclusive: bool | None = None) -> list[CouponRule]:
    """Coupons with numbers in no order; some differ from one before them in nothing but number and end."""
    wallet: list[CouponRule] = []
    for number in draw(st.lists(st.integers(1, 99), max_size=max_size, unique=True)):
        if wallet and draw(st.integers(0, 3)) == 0:
            model, end = draw(st.sampled_from(wallet)), NOW + DAY * draw(st.integers(1, 3))
            wallet.append(replace(model, coupon_id=number, valid_to=end))
        else:
            wallet.append(draw(rules(number, exclusive)))
    return wallet


def best_by_trying_all(order: OrderBody, wallet: Sequence[CouponRule]) -> Discounts:
    """The best of all combinations, by the engine alone: larger discount, fewer coupons, earliest ends, numbers."""
    by_number = {rule.coupon_id: rule for rule in wallet}
    best = apply_coupons(order, [], NOW)
    for size in range(1, len(wallet) + 1):
        for chosen in combinations(wallet, size):
            found = apply_coupons(order, chosen, NOW)
            if not found.refused and _preference(found, by_number) < _preference(best, by_number):
                best = found
    return best


def _preference(found: Discounts, by_number: dict[int, CouponRule]) -> tuple[Any, ...]:
    ages = sorted((by_number[used.coupon_id].valid_to, used.coupon_id) for used in found.applied)
    return -found.discount_minor, len(found.applied), ages
