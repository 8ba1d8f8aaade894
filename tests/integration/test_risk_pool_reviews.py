"""Held claims of random amounts: what they drew is theirs, until it is given back."""

from __future__ import annotations

import pytest

from coupon_workers.risk import review_desk
from coupon_workers.risk.policy_desk import put_policy
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import publish_template
from tests.support.risk import POLICY, claim_from, policy, rule
from tests.support.sale import Sale, assert_sound, gate_of
from tests.support.template import insert_template


@pytest.fixture
def sale(services: Services) -> Sale:
    """Four amounts that differ; a claim from a device is held."""
    put_policy(services, POLICY, policy(rule("look", threshold=0, verdict="review")), None)
    template_id = insert_template(
        services.engine,
        type="random_amount",
        amount_minor=None,
        pool={"min": 100, "max": 400, "budget": 1_000, "distribution": "uniform"},
        total_quantity=4,
        risk_policy=POLICY,
        status="draft",
    )
    publish_template(services, template_id)
    return Sale(services, template_id, gate_of(services))


@pytest.mark.parametrize("how", ["approve", "reject"])
@pytest.mark.parametrize("flushed", [False, True])
def test_a_drawn_amount_stays_with_its_claim(services: Services, sale: Sale, how: str, flushed: bool) -> None:
    """Also when Redis loses its memory meanwhile; every amount is given once."""
    claim_id = claim_from(sale, "ann", device="d1").claim_id
    sale.drain()
    assert_sound(services)
    if flushed:
        services.redis.flushall()
        sale.preheat()
        assert_sound(services)

    if how == "approve":
        review_desk.approve(services, claim_id, "key-1")
    else:
        review_desk.reject(services, claim_id, "key-1", "no")
    assert_sound(services)
    sale.claim_each(["bob", "cid", "dan"] if how == "approve" else ["bob", "cid", "dan", "eve"])
    sale.drain()

    assert [(1_000,)] == sale.rows("SELECT sum(face_value_minor) FROM coupon WHERE template_id = :template_id")
    assert 0 == sale.stock
    assert_sound(services)


def test_an_amount_that_was_gone_is_drawn_when_the_claim_is_approved(services: Services, sale: Sale) -> None:
    """The gate passes over it afterwards."""
    claim_id = claim_from(sale, "ann", device="d1").claim_id
    sale.drain()
    with services.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE risk_review SET face_value_minor = NULL")
    sale.preheat()

    review_desk.approve(services, claim_id, "key-1")
    assert_sound(services)
    sale.claim_each(["bob", "cid", "dan"])
    sale.drain()

    assert [(1_000,)] == sale.rows("SELECT sum(face_value_minor) FROM coupon WHERE template_id = :template_id")
    assert_sound(services)
