"""Whether what is owed was reached: medians of the rounds, and how far the rounds lay apart."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median, quantiles

from bench.row import Comparison, RowResult


@dataclass(frozen=True, slots=True)
class Verdict:
    """``ours`` and ``peer`` are medians. ``ratio`` is the median of the rounds' own ratios, ``lowest`` and ``highest``
    the ends of them, and half of them lie between ``lower`` and ``upper``: the two sides of a round ran right after
    each other, so that a machine that is slower for a minute moves both. ``reached`` is None where nothing is owed."""

    comparison: Comparison
    ours: float
    peer: float
    ratio: float
    lowest: float
    lower: float
    upper: float
    highest: float
    reached: bool | None


def judge(result: RowResult, comparison: Comparison) -> Verdict | None:
    """The verdict on one comparison; None when no round has both sides of it."""
    ours = result.of(comparison.ours, comparison.number)
    if comparison.peer is None:
        peers = [comparison.constant or 1.0] * len(ours)
    else:
        peers = result.of(comparison.peer, comparison.number)
    ratios = [mine / theirs for mine, theirs in zip(ours, peers, strict=False) if theirs]
    if not ratios:
        return None
    ratio = median(ratios)
    lower, _, upper = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return Verdict(
        comparison,
        median(ours),
        median(peers),
        ratio,
        min(ratios),
        lower,
        upper,
        max(ratios),
        _reached(comparison, ratio),
    )


def _reached(comparison: Comparison, ratio: float) -> bool | None:
    if comparison.owed is None:
        return None
    return ratio >= comparison.owed if comparison.sense == "at least" else ratio <= comparison.owed
