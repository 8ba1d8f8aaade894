"""Claims held for review are reconciled: a wrong counter and a deadline nobody kept are found once, and mended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from coupon_workers.reconciliation.code_differences import code_differences
from coupon_workers.reconciliation.difference import Difference
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.services import Services
from tests.support.campaign import plan_campaign
from tests.support.recon_reading import differences, found, repair, work
from tests.support.reconciling import ReconDesk
from tests.support.risk import claim_from, risky_sale, rule
from tests.support.sale import Sale, assert_sound


@pytest.fixture
def sale(services: Services) -> Sale:
    """Two claims held, one issued, and a campaign whose units are set aside."""
    sale = risky_sale(services, rule("look", threshold=0, verdict="review"), total_quantity=50)
    for user in ("ann", "bob"):
        claim_from(sale, user, device="d1")
    claim_from(sale, "cid")
    sale.drain()
    plan_campaign(sale, ["u1", "u2", "u3"]).start()
    services.post.sent.clear()  # type: ignore[attr-defined]
    return sale


def sql(sale: Sale, statement: str) -> None:
    """Change the database behind everyone's back."""
    with sale.services.engine.begin() as connection:
        connection.exec_driver_sql(statement)


OVERDUE = "UPDATE risk_review SET deadline_at = now() - interval '16 minutes'"

DAMAGE: dict[str, tuple[str, str, str, RepairName]] = {
    "the counter of held claims too low": (
        "UPDATE coupon_template SET held_quantity = 0",
        "held_counter_differs",
        "held",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "the counter of held claims too high": (
        "UPDATE coupon_template SET held_quantity = 5",
        "held_counter_differs",
        "held",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "both counters of units set aside": (
        "UPDATE coupon_template SET reserved_quantity = reserved_quantity - 2, held_quantity = 0",
        "reserved_counter_differs",
        "reserved",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "deadlines that nobody kept": (OVERDUE, "review_overdue", "reviews", RepairName.SWEEP_RISK),
}


def all_differences(services: Services) -> list[Difference]:
    """Of every reader that needs no statement."""
    return [*differences(services), *code_differences(services, services.clock(), None).differences]


def test_held_claims_that_are_in_order_are_no_difference(services: Services, sale: Sale) -> None:
    """Their units are set aside, and counted."""
    assert (5, 2) == (sale.books["reserved_quantity"], sale.books["held_quantity"])
    assert [] == all_differences(services)


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_wrong_is_found_once_and_mended_once(services: Services, sale: Sale, damage: str) -> None:
    """One root, one difference of its class; the repair may be done twice."""
    statement, finding_class, part, proposed = DAMAGE[damage]
    sql(sale, statement)
    if finding_class != "review_overdue":
        with pytest.raises(AssertionError):
            assert_sound(services)

    [difference] = all_differences(services)
    for _ in range(2):
        repair(services, difference)
    work(services)

    subject = f"template {sale.template_id} {part}"
    assert (finding_class, subject, proposed) == (difference.finding_class, difference.subject, difference.repair)
    assert [] == all_differences(services)
    assert_sound(services)


def test_a_gate_that_was_built_from_a_wrong_counter_is_built_anew(services: Services, sale: Sale) -> None:
    """With the counter it is put right: the stock is what the database leaves."""
    sql(sale, "UPDATE coupon_template SET held_quantity = 0")
    sale.preheat()
    by_class = {each.finding_class: each for each in all_differences(services)}

    repair(services, by_class["held_counter_differs"])
    work(services)

    assert [] == found(services)
    assert 44 == sale.stock
    assert_sound(services)


@pytest.mark.parametrize(
    ("statement", "held"),
    [("UPDATE coupon_template SET held_quantity = 1", 2), (OVERDUE, 0)],
    ids=["counter", "deadline"],
)
def test_a_run_repairs_it_by_itself(services: Services, sale: Sale, statement: str, held: int) -> None:
    """The next run finds nothing, and nothing is opened again."""
    desk = ReconDesk(services, datetime.now(UTC) + timedelta(minutes=1))
    sql(sale, statement)

    [finding] = desk.reconcile(ReconKind.BATCHES)
    work(services)
    again = desk.later(minutes=5).reconcile(ReconKind.BATCHES)

    assert (True, FindingState.REPAIRED, "reconciliation") == (finding.automatic, finding.state, finding.decided_by)
    assert [] == again
    assert held == sale.books["held_quantity"]


def test_a_deadline_that_has_just_passed_is_the_sweeps(services: Services, sale: Sale) -> None:
    """It is a matter of seconds; a finding is what the sweep has missed for a quarter of an hour."""
    sql(sale, "UPDATE risk_review SET deadline_at = now() - interval '14 minutes'")

    assert [] == all_differences(services)
