"""A shop's own scorer of accounts. Models differ: this is the place for one.

A shop writes a class with ``score_users`` and names it in ``COUPON_RISK_SCORER`` as ``module:factory``; the factory is
called without arguments, once a turn. It works ahead of the claims, never in them: a claim finds a score, or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol, cast


class Score(NamedTuple):
    """From 0 (harmless) to 1000; good for ``ttl_s`` seconds, then asked for again."""

    score: int
    ttl_s: int = 86_400


class RiskScorer(Protocol):
    """Whoever knows how risky accounts are."""

    def score_users(self, user_ids: Sequence[str]) -> Mapping[str, Score]:
        """The scores of those it knows something of, of up to 500 users. May raise anything: they are asked again."""


def load_scorer(path: str) -> RiskScorer:
    """The scorer of ``module:factory``. Raises ``ImportError`` or ``AttributeError`` when there is none."""
    module, _, factory = path.partition(":")
    return cast(RiskScorer, getattr(import_module(module), factory)())
