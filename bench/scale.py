"""How much of everything a run does. Every count and every time has a bound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """``rounds`` are measured, after ``rehearsals`` that are not; of rows with short rounds ``short_rounds``, each load
    of ``short_load_s``. Times are of one run of one side, counts likewise.

    ``drain_claims`` are settled by us and copied by COPY; ``message_claims`` are those of the peers that take a
    message for each, fewer because they are slower (both are told as rates). The peak whose half is offered is the
    median of ``peak_runs``. ``many_outstanding`` and ``few_outstanding`` coupons lie in the two databases that
    ``outstanding_claims`` more are claimed from. ``few_users`` and ``many_users`` are the audiences of campaigns;
    ``beside_rate`` claims a second come beside one of ``beside_users``, which must last longer. ``expired_coupons`` are
    ended at one go, ``expired_beside`` while claims come. ``reconciled_coupons`` are compared with all that belongs to
    them. ``many_offers`` templates are in the claim centre.
    """

    rounds: int = 5
    rehearsals: int = 1
    peak_runs: int = 3
    connections: int = 32
    load_s: float = 4.0
    short_rounds: int = 20
    short_load_s: float = 2.0
    drain_claims: int = 20_000
    message_claims: int = 4_000
    latency_s: float = 10.0
    few_outstanding: int = 10_000
    many_outstanding: int = 2_000_000
    outstanding_claims: int = 5_000
    few_users: int = 10_000
    many_users: int = 300_000
    beside_rate: float = 300.0
    beside_users: int = 600_000
    expired_coupons: int = 100_000
    expired_beside: int = 400_000
    reconciled_coupons: int = 300_000
    many_offers: int = 200


NORMAL = Scale()

QUICK = Scale(
    rounds=2,
    connections=16,
    load_s=1.0,
    short_rounds=4,
    short_load_s=1.0,
    drain_claims=2_000,
    message_claims=300,
    latency_s=2.0,
    few_outstanding=1_000,
    many_outstanding=200_000,
    outstanding_claims=2_000,
    few_users=1_000,
    many_users=20_000,
    beside_users=200_000,
    expired_coupons=20_000,
    expired_beside=60_000,
    reconciled_coupons=50_000,
    many_offers=60,
)
"""Shows that everything works; the numbers say little."""

FULL_OUTSTANDING = 10_000_000
"""What DESIGN 14 names; it takes minutes and about ten gigabytes to fill."""

FULL_USERS = 1_000_000
"""The audience of a large campaign."""

FULL_RECONCILED = 5_000_000
"""Coupons of a large shop that a night's reconciliation looks at."""
