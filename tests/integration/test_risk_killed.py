"""Processes killed as they decide about held claims, or sweep: what they left is finished once (docs/testing.md)."""

from __future__ import annotations

import signal

import pytest

from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.runtime.services import Services
from tests.support.recon_reading import found
from tests.support.risk import claim_from, risky_sale, rule
from tests.support.risk_crash import TOLD, act, act_in_child
from tests.support.sale import Sale, assert_sound

POINTS = ("review.before_commit", "review.after_commit", "review.after_tell")


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units, one a user; a claim from a device is held, one from a farm refused."""
    rules = rule("look", threshold=0, verdict="review"), rule("farm", dimension="ip", threshold=0)
    return risky_sale(services, *rules, per_user_limit=1, per_user_daily_limit=1)


def assert_ended(services: Services, sale: Sale, claim_id: int, how: str) -> None:
    """Once, in both stores, as it was decided."""
    approved = how == "approve"
    assert f"{claim_id} {TOLD[how]}" == sale.answer("ann")
    assert (9 if approved else 10, 0, 0) == (
        sale.stock, *(sale.books[name] for name in ("reserved_quantity", "held_quantity")),
    )  # fmt: skip
    assert ({claim_id: "ann"} if approved else {}) == sale.coupons()
    assert ({} if approved else {claim_id: "RISK_REJECTED"}) == sale.rejections()
    assert [] == found(services)
    assert_sound(services)


@pytest.mark.parametrize("how", TOLD)
@pytest.mark.parametrize("point", POINTS)
def test_whoever_is_killed_leaves_all_of_it_or_nothing(services: Services, sale: Sale, how: str, point: str) -> None:
    """Before the commit the claim is held as before; after it the sweep tells the gate what it was not told."""
    claim_id = claim_from(sale, "ann", device="d1").claim_id
    sale.drain()

    code = act_in_child(services.settings, how, claim_id, point)
    left = (sale.books["held_quantity"], sale.answer("ann"))
    if point == "review.before_commit":
        act(services, how, claim_id)
    told = [sweep_risk(services)["told"], sweep_risk(services)["told"]]

    assert -signal.SIGKILL == code
    expected = {
        "review.before_commit": (1, f"{claim_id} held"),
        "review.after_commit": (0, f"{claim_id} held"),
        "review.after_tell": (0, f"{claim_id} {TOLD[how]}"),
    }
    assert expected[point] == left
    assert [int(point != "review.before_commit"), 0] == told
    assert_ended(services, sale, claim_id, how)


@pytest.mark.parametrize("how", TOLD)
def test_a_rebuild_between_a_death_and_the_sweep_gives_nothing_back_twice(
    services: Services, sale: Sale, how: str
) -> None:
    """The gate knows the end from the database, and is told of it once more."""
    claim_id = claim_from(sale, "ann", device="d1").claim_id
    sale.drain()

    act_in_child(services.settings, how, claim_id, "review.after_commit")
    services.redis.flushall()
    sale.preheat()
    sweep_risk(services)

    assert_ended(services, sale, claim_id, how)


def test_a_sweep_that_is_killed_over_the_log_writes_no_refusal_twice(services: Services, sale: Sale) -> None:
    """What was written and not taken off comes again, and is there already."""
    refused = claim_from(sale, "bob", ip="203.0.113.9")

    code = act_in_child(services.settings, "sweep", 0, "verdicts.after_commit")
    left = services.redis.xlen(sale.keys.risk_log)
    sweep_risk(services)

    assert "farm" == refused.rule
    assert (-signal.SIGKILL, 1, 0) == (code, left, services.redis.xlen(sale.keys.risk_log))
    assert [("bob", "farm")] == sale.rows("SELECT user_id, rule FROM risk_verdict")
    assert_sound(services)
