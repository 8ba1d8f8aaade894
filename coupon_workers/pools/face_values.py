"""Sharing a budget out: so many face values, each within its bounds, of a shape, summing to the budget exactly.

Pure but for chance, and whole numbers throughout: no float decides a value, nor the shape. Values are first drawn one
by one around the mean that the budget leaves, then what they miss the budget by, little beside their number, is spread
over all of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from coupon_workers.pools.chance import shuffle, words

BELL = 3
"""A bell is the sum of so many even draws: its standard deviation is then a third of the way from its middle to either
end, which is as far as values lie."""


class Tier(NamedTuple):
    """A share of the values, by ``weight`` among all tiers, that lies evenly from ``least`` to ``most``."""

    least: int
    most: int
    weight: int


def even(count: int, least: int, most: int, budget: int) -> array[int]:
    """Values that lie evenly over the widest range around their mean that fits between ``least`` and ``most``.

    Shuffled; ``count * least <= budget <= count * most`` is the caller's to see to, here and below.
    """
    return _around_the_mean(1, count, least, most, budget)


def bell(count: int, least: int, most: int, budget: int) -> array[int]:
    """Values that lie in a bell over the same range as ``even``'s: many near the mean, few near the ends. Shuffled."""
    return _around_the_mean(BELL, count, least, most, budget)


def tiered(count: int, tiers: Sequence[Tier], budget: int) -> array[int]:
    """Values of tiers, as many of each as ``counts_of`` says, even in each. Shuffled.

    What the budget leaves above the least of all values goes to the tiers in proportion to what they can take.
    """
    counts = counts_of(count, [tier.weight for tier in tiers])
    room = [each * (tier.most - tier.least) for each, tier in zip(counts, tiers, strict=True)]
    least = [each * tier.least for each, tier in zip(counts, tiers, strict=True)]
    above = counts_of(budget - sum(least), room) if sum(room) else [0] * len(tiers)
    values = array("q")
    for tier, each, base, more in zip(tiers, counts, least, above, strict=True):
        values += even(each, tier.least, tier.most, base + more)
    shuffle(values)
    return values


def counts_of(total: int, weights: Sequence[int]) -> list[int]:
    """``total`` in whole parts in proportion to ``weights``, summing to it: what is cut off goes by the running sum.

    No part exceeds its weight where the total does not exceed their sum.
    """
    whole = sum(weights)
    ends = [total * reached // whole for reached in accumulate(weights)]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def _around_the_mean(draws: int, count: int, least: int, most: int, budget: int) -> array[int]:
    if count == 0:
        return array("q")
    if 2 * budget <= count * (least + most):
        low, high = least, -(-2 * budget // count) - least
    else:
        low, high = 2 * budget // count - most, most
    values = _drawn(draws, count, low, high)
    _spread(values, least, most, budget - sum(values))
    shuffle(values)
    return values


def _drawn(draws: int, count: int, low: int, high: int) -> array[int]:
    """Each the sum of ``draws`` even numbers whose ranges sum to that from ``low`` to ``high``."""
    widths = counts_of(high - low, [1] * draws)
    values = array("q", [low]) * count
    for width in widths:
        for at, word in zip(range(count), words(), strict=False):
            values[at] += (word * (width + 1)) >> 64
    return values


def _spread(values: array[int], least: int, most: int, missing: int) -> None:
    """Add ``missing``, which may be below zero, in parts as equal as the bounds let them be.

    The values are in no order, so neither is who gets the odd unit. Each round gives all that fits; values that are at
    their bound take nothing any more, and the budget fits all: so it ends.
    """
    while missing:
        left = len(values)
        for at, value in enumerate(values):
            part = -(-missing // left) if missing > 0 else missing // left
            moved = min(max(value + part, least), most)
            missing -= moved - value
            values[at] = moved
            left -= 1
            if not missing:
                return
