"""Exact arithmetic of money: integers of the minor unit in, integers out, nothing lost and nothing made (DESIGN 8).

The currency's exponent plays no part: a yen, a fen and a fils are one unit each.
"""

from __future__ import annotations

from collections.abc import Sequence


def half_up(numerator: int, denominator: int) -> int:
    """``numerator / denominator`` to the nearest integer, a half upwards.

    Raises ``ValueError`` for a negative numerator or a denominator below 1.
    """
    if numerator < 0 or denominator < 1:
        raise ValueError(f"no rounding of {numerator}/{denominator}")
    return (numerator + denominator // 2) // denominator


def allocate(total: int, amounts: Sequence[int]) -> list[int]:
    """Shares of ``total`` in proportion to ``amounts``, by largest remainder; of equal remainders the earlier goes up.

    The shares sum to ``total``, and none is above its amount: as ``total`` is at most the sum of the amounts, a
    quotient with a remainder lies below its amount by one unit at least, and only such quotients are rounded up.
    Raises ``ValueError`` for a negative number, or a total above the sum.
    """
    whole = sum(amounts)
    if not 0 <= total <= whole or min(amounts, default=0) < 0:
        raise ValueError(f"{total} cannot be allocated to {list(amounts)}")
    if total == whole:
        return list(amounts)
    shares = [total * amount // whole for amount in amounts]
    missing = total - sum(shares)
    if missing:
        remainders = [total * amount % whole for amount in amounts]
        # Sorting is stable, backwards too: lines of equal remainders keep their order.
        for position in sorted(range(len(shares)), key=remainders.__getitem__, reverse=True)[:missing]:
            shares[position] += 1
    return shares
