"""Exact percentiles: the nearest rank of all values, nothing estimated."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(ascending: Sequence[float], percent: int) -> float | None:
    """The smallest value that at least ``percent`` of 100 values do not exceed; None of no values.

    ``ascending`` must be sorted. Raises ``ValueError`` unless 1 <= percent <= 100.
    """
    if not 1 <= percent <= 100:
        raise ValueError("percent must be between 1 and 100")
    if not ascending:
        return None
    rank = -(-len(ascending) * percent // 100)  # ceiling, in integers
    return ascending[rank - 1]
