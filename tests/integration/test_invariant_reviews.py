"""The checker bites on claims that were held: each has one end, also when no gate remembers it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from coupon_workers.checking.report import check_all
from coupon_workers.risk.review_desk import approve, reject
from coupon_workers.runtime.services import Services
from tests.support.risk import claim_from, risky_sale, rule
from tests.support.sale import Sale, assert_sound

INSERT_REJECTION = (
    "INSERT INTO claim_rejection (claim_id, user_id, template_id, request_id, claim_seq, reason, claimed_at)"
    " SELECT {claim_id}, user_id, template_id, request_id, claim_seq, 'PAUSED', claimed_at FROM risk_review"
    " WHERE user_id = 'held'"
)
COUNTED = "UPDATE coupon_template SET rejected_quantity = rejected_quantity + 1"
BREAKS: dict[str, tuple[str, ...]] = {
    "a held claim that was rejected": (INSERT_REJECTION.format(claim_id="claim_id"), COUNTED),
    "a held request that was rejected by another claim": (INSERT_REJECTION.format(claim_id=1), COUNTED),
    "an approved claim without its coupon": (
        "DELETE FROM coupon_flow",
        "DELETE FROM coupon",
        "UPDATE coupon_template SET issued_quantity = 0",
    ),
    "a rejected claim without its reason": (
        "DELETE FROM claim_rejection",
        "UPDATE coupon_template SET rejected_quantity = 0",
    ),
}


@pytest.fixture
def sale(services: Services) -> Sale:
    """Three claims that were held, of which one is approved and one rejected; Redis has lost its memory."""
    sale = risky_sale(services, rule("look", threshold=0, verdict="review"))
    decisions: dict[str, Callable[..., object]] = {"approved": approve, "rejected": reject}
    for user in ("held", *decisions):
        claim_id = claim_from(sale, user, device="d1").claim_id
        sale.drain()
        if user in decisions:
            decisions[user](services, claim_id, "key-1", "seen")
    services.redis.flushdb()
    return sale


def test_reviews_in_every_state_break_no_rule(sale: Sale) -> None:
    """Each claim is a coupon, a rejection, or held."""
    assert_sound(sale.services)


@pytest.mark.parametrize("name", BREAKS)
def test_a_claim_without_its_one_end_is_reported(sale: Sale, name: str) -> None:
    """And nothing else is."""
    with sale.services.engine.begin() as connection:
        for statement in BREAKS[name]:
            connection.execute(text(statement))

    found = check_all(sale.services, patience_s=0).breaches

    assert ["one_effect"] == [breach.invariant for breach in found]
