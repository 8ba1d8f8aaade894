"""The rules of a random-amount template: whether its budget can be shared out as it asks (DESIGN 11)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from coupon_workers.pools.face_values import counts_of
from coupon_workers.templates.pool import MAX_POOL, PoolTier
from coupon_workers.templates.template_rule import Broken, template_rule


@template_rule("type", "total_quantity")
def _pool_fits_the_gate(kind: str, quantity: int) -> Broken:
    if kind == "random_amount" and quantity > MAX_POOL:
        yield "total_quantity", f"A template of type {kind} has {MAX_POOL} at most"


@template_rule("type", "restock_on_revoke")
def _nothing_goes_back(kind: str, restock: bool) -> Broken:
    if kind == "random_amount" and restock:
        yield "restock_on_revoke", f"A template of type {kind} takes no drawn amount back"


@template_rule("pool.min", "pool.max")
def _pool_ascends(least: int, most: int) -> Broken:
    if most < least:
        yield "pool.max", "must not be below pool.min"


@template_rule("total_quantity", "pool.min", "pool.max", "pool.budget")
def _budget_can_be_shared(quantity: int, least: int, most: int, budget: int) -> Broken:
    if least <= most and not quantity * least <= budget <= quantity * most:
        yield (
            "pool.budget",
            f"{quantity} values from {least} to {most} sum to {quantity * least} at least, {quantity * most} at most",
        )


@template_rule("pool.distribution", "pool.tiers")
def _tiers_of_distribution(distribution: str, tiers: Sequence[PoolTier] | None) -> Broken:
    if distribution == "tiered" and tiers is None:
        yield "pool.tiers", "The distribution tiered needs it"
    if distribution != "tiered" and tiers is not None:
        yield "pool.tiers", f"The distribution {distribution} has none"


@template_rule("pool.min", "pool.max", "pool.tiers")
def _tiers_ascend(least: int, most: int, tiers: Sequence[PoolTier] | None) -> Broken:
    for number, tier in enumerate(tiers or ()):
        if tier.max < tier.min:
            yield f"pool.tiers.{number}.max", "must not be below its min"
        if tier.min < least:
            yield f"pool.tiers.{number}.min", "must not be below pool.min"
        if tier.max > most:
            yield f"pool.tiers.{number}.max", "must not be above pool.max"
    for number, (lower, upper) in enumerate(pairwise(tiers or ()), 1):
        if upper.min <= lower.max:
            yield f"pool.tiers.{number}.min", "must be above the max of the tier before it"


@template_rule("total_quantity", "pool.budget", "pool.tiers")
def _budget_fits_the_tiers(quantity: int, budget: int, tiers: Sequence[PoolTier] | None) -> Broken:
    if tiers is None or any(tier.max < tier.min for tier in tiers):
        return
    counts = counts_of(quantity, [tier.weight for tier in tiers])
    least = sum(count * tier.min for count, tier in zip(counts, tiers, strict=True))
    most = sum(count * tier.max for count, tier in zip(counts, tiers, strict=True))
    if not least <= budget <= most:
        yield (
            "pool.budget",
            f"{', '.join(map(str, counts))} values of the tiers sum to {least} at least, {most} at most",
        )
