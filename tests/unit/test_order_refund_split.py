"""Returning an order: every sequence of refunds adds up to what was paid, to the last unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.orders.coupon_rule import CouponRule
from coupon_workers.orders.discount import apply_coupons
from coupon_workers.orders.order import OrderBody
from coupon_workers.orders.refund_split import Refund, RefundBook, SoldLine, UsedCoupon
from tests.support.shopping import NOW, carts, coupon, ids, order_of, wallets


def book_of(order: OrderBody, wallet: Sequence[CouponRule], rechecked: Sequence[int] = ()) -> RefundBook:
    """The order, paid for with these coupons."""
    thresholds = {rule.coupon_id: rule.threshold_minor for rule in wallet}
    used = [
        UsedCoupon(each.coupon_id, each.allocations, thresholds[each.coupon_id], each.coupon_id in rechecked)
        for each in apply_coupons(order, wallet, NOW).applied
    ]
    return RefundBook.of([SoldLine(line.line_id, line.unit_price, line.quantity) for line in order.lines], used)


def pieces(unit_price: int, quantity: int, *, recheck: bool = False, **terms: Any) -> RefundBook:
    """An order of one line "1", with one coupon."""
    line = {"line_id": "1", "product_id": "p1", "unit_price": unit_price, "quantity": quantity}
    return book_of(order_of([], lines=[line]), [coupon(**terms)], [1] if recheck else [])


def in_turn(book: RefundBook, *returned: list[tuple[str, int]] | None) -> list[Refund]:
    """The refunds, one after the other."""
    refunds = []
    for each in returned:
        refund, book = book.refund(each)
        refunds.append(refund)
    return refunds


def test_two_of_three_pieces_take_two_thirds_of_the_discount_with_them() -> None:
    """3 × 10000 with 10 % off: 18000 back, 2000 reversed, and the order is not returned yet."""
    [refund] = in_turn(pieces(10_000, 3, percent_off_bp=1000), [("1", 2)])

    assert (18_000, 2_000, {1: 2_000}, False) == (
        refund.amount_minor,
        refund.discount_reversed_minor,
        refund.by_coupon,
        refund.everything_returned,
    )


def test_each_line_goes_back_for_what_was_paid_for_it() -> None:
    """600 and 400 with 10 % off: 540, 360, and nothing more."""
    book = book_of(order_of([600, 400]), [coupon(percent_off_bp=1000)])

    first, book = book.refund([("1", 1)])
    second, book = book.refund([("2", 1)])

    assert (540, False) == (first.amount_minor, first.everything_returned)
    assert (360, True) == (second.amount_minor, second.everything_returned)
    for again in (None, [("1", 1)], [("2", 1)]):
        with pytest.raises(Conflict) as refusal:
            book.refund(again)
        assert "NOTHING_LEFT" == refusal.value.code


@pytest.mark.parametrize(("recheck", "expected"), [(False, 22_500), (True, 22_000)])
def test_the_pieces_kept_below_the_threshold_lose_the_discount_if_the_template_says_so(
    recheck: bool, expected: int
) -> None:
    """6 × 5000, 10 % from 30000 on, five returned."""
    book = pieces(5_000, 6, percent_off_bp=1000, threshold_minor=30_000, recheck=recheck)

    refund, last = in_turn(book, [("1", 5)], None)

    assert expected == refund.amount_minor
    assert 27_000 - expected == last.amount_minor


def test_a_threshold_that_is_still_met_withdraws_nothing() -> None:
    """By the list price of what the coupon is for."""
    book = pieces(5_000, 6, percent_off_bp=1000, threshold_minor=20_000, recheck=True)

    first, second = in_turn(book, [("1", 2)], [("1", 1)])

    assert (9_000, 1_000) == (first.amount_minor, first.discount_reversed_minor)
    assert (3_000, 2_000) == (second.amount_minor, second.discount_reversed_minor)


def test_what_one_refund_cannot_bear_is_withdrawn_from_the_next() -> None:
    """6 × 5000 at half price from 30000 on: what is kept would cost more than was paid, and nobody is asked for it."""
    book = pieces(5_000, 6, percent_off_bp=5000, threshold_minor=30_000, recheck=True)

    refunds = in_turn(book, *[[("1", 1)]] * 6)

    assert [0, 0, 0, 5_000, 5_000, 5_000] == [refund.amount_minor for refund in refunds]


def test_a_coupon_that_keeps_is_not_withdrawn_with_one_that_rechecks() -> None:
    """Each by its own template; the kept line shows what it lost."""
    wallet = [
        coupon(1, amount_minor=300, threshold_minor=3_000),
        coupon(2, amount_minor=600, threshold_minor=3_000),
    ]
    book = book_of(order_of([1_000, 1_000, 1_000]), wallet, rechecked=[2])

    [refund] = in_turn(book, [("1", 1)])

    assert {1: 100, 2: 600} == refund.by_coupon
    assert [("1", 1, 1_000, 300), ("2", 0, 0, 200), ("3", 0, 0, 200)] == [
        (part.line_id, part.quantity, part.gross_minor, part.discount_reversed_minor) for part in refund.lines
    ]
    assert 300 == refund.amount_minor


def test_goods_a_coupon_is_not_for_do_not_hold_its_threshold() -> None:
    """Only its own lines count."""
    wallet = [coupon(1, amount_minor=200, threshold_minor=2_000, products=ids("p1", "p2"))]
    book = book_of(order_of([1_000, 1_000, 9_000]), wallet, rechecked=[1])

    [refund] = in_turn(book, [("1", 1)])

    assert (800, 200) == (refund.amount_minor, refund.discount_reversed_minor)


def test_a_free_order_is_returned_for_nothing() -> None:
    """A normal refund of 0, with the whole discount reversed."""
    [refund] = in_turn(pieces(500, 2, amount_minor=9_999), None)

    assert (0, 1_000, True) == (refund.amount_minor, refund.discount_reversed_minor, refund.everything_returned)


def test_an_order_without_coupons_is_returned_for_its_prices() -> None:
    """Nothing is reversed."""
    first, rest = in_turn(book_of(order_of([600, 400]), []), [("2", 1)], None)

    assert (400, 0, {}) == (first.amount_minor, first.discount_reversed_minor, first.by_coupon)
    assert (600, True) == (rest.amount_minor, rest.everything_returned)


@pytest.mark.parametrize(
    ("returned", "fields"),
    [
        ([("9", 1)], ["lines.0.line_id"]),
        ([("1", 1), ("1", 1)], ["lines.1.line_id"]),
        ([("1", 0)], ["lines.0.quantity"]),
        ([("1", -1), ("2", 1)], ["lines.0.quantity"]),
        ([("1", 4)], ["lines.0.quantity"]),
        ([("2", 1), ("1", 3)], ["lines.1.quantity"]),
        ([("9", 0), ("8", 1)], ["lines.0.line_id", "lines.0.quantity", "lines.1.line_id"]),
        ([], ["lines"]),
    ],
)
def test_what_cannot_be_returned_is_named(returned: list[tuple[str, int]], fields: list[str]) -> None:
    """Unknown lines, lines given twice, no pieces, more pieces than are left; the book is as before."""
    lines = [
        {"line_id": "1", "product_id": "p1", "unit_price": 100, "quantity": 3},
        {"line_id": "2", "product_id": "p2", "unit_price": 100, "quantity": 1},
    ]
    _, book = book_of(order_of([], lines=lines), []).refund([("1", 1)])

    with pytest.raises(InvalidInput) as refusal:
        book.refund(returned)

    assert fields == [field for field, _ in refusal.value.errors]
    assert (2, 1) == book.kept


@st.composite
def returns(draw: st.DrawFn) -> tuple[RefundBook, list[list[tuple[str, int]]]]:
    """A paid order, and some way to return all of it; coupons keep or recheck."""
    order, wallet = draw(carts()), draw(wallets(max_size=5))
    rechecked = draw(st.sets(st.sampled_from([rule.coupon_id for rule in wallet]))) if wallet else set()
    book = book_of(order, wallet, sorted(rechecked))
    kept = {line.line_id: line.quantity for line in order.lines}
    steps = []
    while any(kept.values()):
        step = {line_id: draw(st.integers(0, left)) for line_id, left in kept.items()}
        if not any(step.values()):
            step = dict(kept)
        kept = {line_id: left - step[line_id] for line_id, left in kept.items()}
        steps.append([(line_id, quantity) for line_id, quantity in step.items() if quantity])
    return book, steps


@settings(deadline=None)
@given(returns())
def test_however_an_order_is_returned_the_refunds_sum_to_what_was_paid(
    way: tuple[RefundBook, list[list[tuple[str, int]]]],
) -> None:
    """And the reversals to the discount, coupon by coupon; no refund is negative or above what is left."""
    book, steps = way
    paid = book.payable_minor
    discounts = {used.coupon_id: sum(share.amount_minor for share in used.allocations) for used in book.coupons}
    refunds = []

    for step in steps:
        left = book.payable_minor
        refund, book = book.refund(step)
        refunds.append(refund)
        assert 0 <= refund.amount_minor <= left
        assert left - refund.amount_minor == book.payable_minor
        assert all(part >= 0 for part in refund.by_coupon.values())
        assert refund.discount_reversed_minor == sum(refund.by_coupon.values())
        assert refund.discount_reversed_minor == sum(part.discount_reversed_minor for part in refund.lines)
        assert refund.amount_minor + refund.discount_reversed_minor == sum(part.gross_minor for part in refund.lines)
        assert refund.everything_returned == (step is steps[-1])

    assert paid == sum(refund.amount_minor for refund in refunds)
    assert discounts == {number: sum(refund.by_coupon[number] for refund in refunds) for number in discounts}
    assert 0 == book.payable_minor


@settings(deadline=None)
@given(returns())
def test_a_coupon_that_keeps_gives_back_what_was_paid_for_the_piece(
    way: tuple[RefundBook, list[list[tuple[str, int]]]],
) -> None:
    """Less than a unit off the exact part for each refund that the line has had."""
    book, steps = way
    if any(used.recheck for used in book.coupons):
        return
    first = book
    for number, step in enumerate(steps, start=1):
        _, book = book.refund(step)
        for line, kept, now, once in zip(first.lines, book.kept, book.discounts, first.discounts, strict=True):
            assert abs(sum(now) * line.quantity - sum(once) * kept) < number * line.quantity


@settings(deadline=None)
@given(returns())
def test_what_is_kept_costs_its_price_less_discounts_whose_thresholds_it_meets(
    way: tuple[RefundBook, list[list[tuple[str, int]]]],
) -> None:
    """A discount that should be withdrawn and is not, is one that the refund could not bear: it pays nothing out."""
    book, steps = way
    for step in steps:
        refund, book = book.refund(step)
        for place, used in enumerate(book.coupons):
            its = {share.line_id for share in used.allocations}
            reached = sum(
                line.unit_price_minor * kept
                for line, kept in zip(book.lines, book.kept, strict=True)
                if line.line_id in its
            )
            if used.recheck and reached < used.threshold_minor and any(row[place] for row in book.discounts):
                assert 0 == refund.amount_minor
