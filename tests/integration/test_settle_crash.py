"""A worker that dies at any point of settling: what is left, and that the next one brings it to its end (FAULTS 2)."""

from __future__ import annotations

import pytest

from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import pause_template
from tests.support.crash import dies_at
from tests.support.lost_commit import commit_lost
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.template import change_template

BEFORE_COMMIT = ("settle.before_insert", "settle.after_insert")
AFTER_COMMIT = ("settle.after_commit", "settle.after_acknowledge")


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units, one a user."""
    return open_sale(services, per_user_limit=1)


@pytest.mark.parametrize("point", [*BEFORE_COMMIT, *AFTER_COMMIT])
def test_a_worker_that_dies_loses_no_claim_and_doubles_none(
    sale: Sale, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Before the commit nothing has happened; after it everything has but, perhaps, the acknowledgement."""
    claim_ids = sale.claim_each(["ann", "bob", "cat"])
    with dies_at(monkeypatch, point):
        sale.drain()
    coupons, queued = len(sale.coupons()), sale.queued

    sale.drain()

    assert (3 if point in AFTER_COMMIT else 0) == coupons
    assert (0 if point == "settle.after_acknowledge" else 3) == queued
    assert set(claim_ids) == sale.coupons().keys()
    assert (7, 0, 3) == (sale.stock, sale.queued, len(sale.rows("SELECT 1 FROM coupon_flow")))
    assert_sound(sale.services)


@pytest.mark.parametrize("point", [*BEFORE_COMMIT, *AFTER_COMMIT])
def test_a_worker_that_dies_over_a_rejection_gives_back_once(
    sale: Sale, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Whoever finds the entries gives back; whoever finds none has nothing to give."""
    claim_ids = sale.claim_each(["ann", "bob"])
    pause_template(sale.services, sale.template_id)
    with dies_at(monkeypatch, point):
        sale.drain()

    sale.drain()
    sale.drain()

    assert dict.fromkeys(claim_ids, "PAUSED") == sale.rejections()
    assert (10, 2, 2) == (sale.stock, sale.books["rejected_quantity"], len(sale.rows("SELECT 1 FROM outbox")))
    assert_sound(sale.services)


def test_claims_accepted_between_the_commit_and_a_late_acknowledgement_are_settled(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch holds known claims and new ones."""
    known = sale.claim("ann").claim_id
    with dies_at(monkeypatch, "settle.after_commit"):
        sale.drain()
    new = sale.claim("bob").claim_id

    assert 2 == sale.drain()
    assert {known: "ann", new: "bob"} == sale.coupons()
    assert_sound(sale.services)


def test_a_claim_rejected_before_the_crash_stays_rejected_though_it_could_be_issued_now(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It met the end of the stock; units came before it was delivered again (DESIGN 3.3)."""
    claim_ids = sale.claim_each(["ann"])
    sale.drain()
    claim_ids += sale.claim_each(["bob"])
    change_template(sale.services.engine, sale.template_id, total_quantity=1)
    with dies_at(monkeypatch, "settle.after_commit"):
        sale.drain()
    change_template(sale.services.engine, sale.template_id, total_quantity=10)

    sale.drain()

    assert ({claim_ids[0]: "ann"}, {claim_ids[1]: "SOLD_OUT"}) == (sale.coupons(), sale.rejections())
    assert f"{claim_ids[1]} SOLD_OUT" == sale.answer("bob")
    assert_sound(sale.services)


def test_a_commit_that_fails_leaves_the_claims_queued(sale: Sale) -> None:
    """Stock and allowance stay with them, and the next drain settles them (CASES 4)."""
    claim_ids = sale.claim_each(["ann", "bob"])
    with commit_lost(sale.services.engine), pytest.raises(StoreUnavailable):
        sale.drain()
    left = (sale.coupons(), sale.queued, sale.stock)
    sale.drain()

    assert ({}, 2, 8) == left
    assert set(claim_ids) == sale.coupons().keys()
    assert_sound(sale.services)


def test_a_commit_whose_answer_is_lost_gives_nothing_back(sale: Sale) -> None:
    """The coupons are there: the next drain finds them and only acknowledges."""
    claim_ids = sale.claim_each(["ann", "bob"])
    with commit_lost(sale.services.engine, done=True), pytest.raises(StoreUnavailable):
        sale.drain()
    left = (set(sale.coupons()), sale.queued, sale.stock)
    sale.drain()

    assert (set(claim_ids), 2, 8) == left
    assert (8, 0, 2) == (sale.stock, sale.queued, sale.books["issued_quantity"])
    assert ClaimOutcome.REPLAYED == sale.claim("ann").outcome
    assert_sound(sale.services)
