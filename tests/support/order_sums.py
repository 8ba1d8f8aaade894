"""The money of orders in small: what coupons take off and what refunds give back, worked out slowly and plainly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple


class CartLine(NamedTuple):
    """Pieces of product ``p<line>`` at a price."""

    line: str
    price: int
    pieces: int

    @property
    def amount(self) -> int:
        """At list price."""
        return self.price * self.pieces


Cart = tuple[CartLine, ...]


class Terms(NamedTuple):
    """A template. ``percent`` in basis points, with a ``cap``, or else ``amount``."""

    name: str
    amount: int | None = None
    percent: int | None = None
    cap: int | None = None
    threshold: int = 0
    currency: str = "CNY"
    products: tuple[str, ...] = ()
    group: str | None = None
    exclusive: bool = False
    priority: int = 100
    recheck: bool = False
    comes_back: bool = True
    grace_days: int = 0
    transferable: bool = False


class Held(NamedTuple):
    """A coupon as it is put on an order. ``turn``: lower ones are applied first."""

    number: int
    terms: Terms
    turn: tuple[object, ...]


Shares = dict[int, dict[str, int]]
"""Coupon → line → what it takes off that line."""


def rounded(value: Fraction) -> int:
    """To the nearest integer, a half upwards."""
    return floor(value + Fraction(1, 2))


def share_out(total: int, weights: Sequence[int]) -> list[int]:
    """By largest remainder; among equals the first."""
    if total == 0:
        return [0] * len(weights)
    exact = [Fraction(total * weight, sum(weights)) for weight in weights]
    shares = [floor(value) for value in exact]
    for _ in range(total - sum(shares)):
        neediest = max(range(len(shares)), key=lambda place: (exact[place] - shares[place], -place))
        shares[neediest] += 1
    return shares


def take_off(cart: Cart, coupons: Sequence[Held]) -> tuple[Shares, dict[int, str]]:
    """What each coupon takes off which line, and why others take nothing."""
    left = {line.line: line.amount for line in cart}
    shares: Shares = {}
    refused: dict[int, str] = {}
    used: list[Terms] = []
    for coupon in sorted(coupons, key=lambda coupon: coupon.turn):
        lines = [line for line in cart if not coupon.terms.products or f"p{line.line}" in coupon.terms.products]
        amount = sum(left[line.line] for line in lines)
        code = why_not(coupon.terms, lines, amount, used)
        if code:
            refused[coupon.number] = code
            continue
        parts = share_out(discount(coupon.terms, amount), [left[line.line] for line in lines])
        shares[coupon.number] = {line.line: part for line, part in zip(lines, parts, strict=True)}
        for line, part in zip(lines, parts, strict=True):
            left[line.line] -= part
        used.append(coupon.terms)
    return shares, refused


def why_not(terms: Terms, lines: Sequence[CartLine], left: int, used: Sequence[Terms]) -> str | None:
    """The first reason why a coupon does not apply."""
    gross = sum(line.amount for line in lines)
    if not lines:
        return "SCOPE_MISMATCH"
    if gross < terms.threshold:
        return "THRESHOLD_NOT_MET"
    if gross == 0:
        return "NOTHING_TO_DISCOUNT"
    for other in used:
        if terms.exclusive or other.exclusive or (terms.group and terms.group == other.group):
            return "STACKING_CONFLICT"
    return None if discount(terms, left) else "NOTHING_TO_DISCOUNT"


def discount(terms: Terms, left: int) -> int:
    """What a coupon takes off so much."""
    if terms.percent is None:
        return min(terms.amount or 0, left)
    value = rounded(Fraction(left * terms.percent, 10_000))
    return value if terms.cap is None else min(value, terms.cap)


def give_back(
    cart: Cart, kept: dict[str, int], left: Shares, back: dict[str, int], terms: dict[int, Terms]
) -> tuple[int, Shares]:
    """Return pieces ``back`` of those ``kept``; ``left`` is the discount not reversed yet.

    What is paid back, and what of each coupon's discount on each line goes.
    """
    going: Shares = {number: dict.fromkeys(lines, 0) for number, lines in left.items()}
    for line, pieces in back.items():
        on_line = [number for number in left if line in left[number]]
        amounts = [left[number][line] for number in on_line]
        part = rounded(Fraction(sum(amounts) * pieces, kept[line]))
        for number, share in zip(on_line, share_out(part, amounts), strict=True):
            going[number][line] += share
    prices = {line.line: line.price for line in cart}
    gross = sum(prices[line] * pieces for line, pieces in back.items())
    after = {line: pieces - back.get(line, 0) for line, pieces in kept.items()}
    wanted = {
        (line.line, number): left[number][line.line] - going[number][line.line]
        for line in cart
        for number in left
        if line.line in left[number]
        and terms[number].recheck
        and sum(prices[each] * after[each] for each in left[number]) < terms[number].threshold
    }
    least = min(gross - total(going), sum(wanted.values()))
    for (line_id, number), share in zip(wanted, share_out(least, list(wanted.values())), strict=True):
        going[number][line_id] += share
    return gross - total(going), going


def total(shares: Shares) -> int:
    """Of all coupons and lines."""
    return sum(sum(lines.values()) for lines in shares.values())
