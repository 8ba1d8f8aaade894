"""What a run finds it repairs, if it is safe: once, with a trace (DESIGN 3.8, 10)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from coupon_workers.errors import Conflict
from coupon_workers.reconciliation.decision import approve_finding
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.reconciliation.record import record_reading
from coupon_workers.reconciliation.repair import repair_finding, repair_safe_findings
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.run import perform_run, reconcile_due
from coupon_workers.reconciliation.run_retention import forget_runs
from coupon_workers.reconciliation.run_sweep import BROKEN_OFF, sweep_reconciliations
from coupon_workers.reconciliation.stock_differences import stock_differences
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import Task, run_reconciliation
from tests.conftest import PostBox
from tests.support.pool import open_pool
from tests.support.reconciling import CLERK, ReconDesk, difference
from tests.support.sale import Sale, open_sale


@pytest.fixture
def desk(services: Services) -> ReconDesk:
    """A clerk at the machine's time: the template's books are of now."""
    return ReconDesk(services, datetime.now(UTC) + timedelta(minutes=1))


@pytest.fixture
def sale(services: Services) -> Sale:
    """A template with three coupons out."""
    sale = open_sale(services, total_quantity=10)
    sale.claim_each(["u1", "u2", "u3"])
    sale.drain()
    return sale


def _drift(desk: ReconDesk, sale: Sale, by: int) -> None:
    desk.execute(
        "UPDATE coupon_template SET issued_quantity = issued_quantity + :by WHERE template_id = :id",
        by=by, id=sale.template_id,
    )  # fmt: skip


def test_a_counter_that_drifted_is_set_right_by_itself(desk: ReconDesk, sale: Sale) -> None:
    """The finding says what was there, what is there now, who did it; the next run finds nothing."""
    _drift(desk, sale, 2)

    [finding] = desk.reconcile(ReconKind.STOCK)
    again = desk.later(hours=1).reconcile(ReconKind.STOCK)

    assert ("issued_counter_differs", RepairName.RECOUNT_TEMPLATE, True) == (
        finding.finding_class, finding.repair, finding.automatic,
    )  # fmt: skip
    assert (FindingState.REPAIRED, "reconciliation") == (finding.state, finding.decided_by)
    assert finding.outcome and finding.closed_at
    assert ([], 3) == (again, sale.books["issued_quantity"])


def test_a_recount_of_random_amounts_counts_the_pool_too(desk: ReconDesk, services: Services) -> None:
    """What the coupons are worth is what the pool has issued."""
    sale = open_pool(services)
    sale.claim_each(["u1", "u2", "u3"])
    sale.drain()
    left = sale.left()
    desk.execute("UPDATE pool_value SET issued_quantity = 0")
    _drift(desk, sale, -1)

    desk.reconcile(ReconKind.STOCK)

    assert (left, 3) == (sale.left(), sale.books["issued_quantity"])


def test_a_finding_is_repaired_once_however_many_try(desk: ReconDesk, sale: Sale) -> None:
    """The others find it repaired, and leave the template alone."""
    _drift(desk, sale, 2)
    run_id = desk.ask(ReconKind.STOCK)
    desk.reconcile(ReconKind.STOCK)
    [finding] = desk.findings()
    _drift(desk, sale, -1)

    with ThreadPoolExecutor(4) as pool:
        repairs = [
            pool.submit(repair_finding, desk.services, int(finding.finding_id), FindingState.REPAIRED, "another")
            for _ in range(4)
        ]
    for repair in repairs:
        repair.result()

    assert 0 == repair_safe_findings(desk.services, run_id)
    assert [finding] == desk.findings()
    assert 2 == sale.books["issued_quantity"]


def test_what_two_runs_at_once_have_read_is_one_finding(desk: ReconDesk, sale: Sale) -> None:
    """The second one writes when the first has had it repaired: it opens nothing for a person to look at."""
    _drift(desk, sale, 2)
    moments = {desk.ask(): desk.now, desk.later(seconds=1).ask(): desk.now}
    readings = {}
    for run_id, as_of in moments.items():
        desk.begin(run_id)
        readings[run_id] = stock_differences(desk.services, as_of, None, patience_s=0)

    for run_id, as_of in moments.items():
        record_reading(desk.later(seconds=1).services, run_id, ReconKind.STOCK, as_of, None, readings[run_id])
        repair_safe_findings(desk.services, run_id)

    assert ["repaired"] == [state for _, _, state in desk.brief()]
    assert [1, 1] == [len(desk.findings(run_id=run_id)) for run_id in moments]


def test_a_recount_of_one_counter_does_not_hide_that_coupons_are_lost(desk: ReconDesk, sale: Sale) -> None:
    """The other one is all that is left of them: it stays, and nobody gets their units."""
    desk.execute("DELETE FROM coupon_flow WHERE user_id = 'u1'")
    desk.execute("DELETE FROM coupon WHERE user_id = 'u1'")
    desk.execute("UPDATE coupon_template SET rejected_quantity = 4 WHERE template_id = :id", id=sale.template_id)
    run_id = desk.ask()
    desk.begin(run_id)
    reading = stock_differences(desk.services, desk.now, None, patience_s=0)
    record_reading(desk.services, run_id, ReconKind.STOCK, desk.now, None, reading)

    repair_safe_findings(desk.services, run_id)

    assert [("coupons_differ", "open"), ("rejected_counter_differs", "repaired")] == [
        (finding_class, state) for finding_class, _, state in desk.brief()
    ]
    assert (3, 0) == (sale.books["issued_quantity"], sale.books["rejected_quantity"])


def test_what_differs_again_in_the_same_way_waits_for_a_person(desk: ReconDesk, sale: Sale) -> None:
    """Its repair did not mend the cause: it is not repaired again and again."""
    _drift(desk, sale, 2)
    desk.reconcile(ReconKind.STOCK)
    _drift(desk, sale, 2)

    [second] = desk.later(hours=1).reconcile(ReconKind.STOCK)
    approved = approve_finding(desk.services, int(second.finding_id), CLERK, "the cause is mended")

    assert (FindingState.OPEN, True) == (second.state, second.automatic)
    assert (FindingState.APPROVED, CLERK, "the cause is mended") == (
        approved.state, approved.decided_by, approved.comment,
    )  # fmt: skip
    assert 3 == sale.books["issued_quantity"]
    assert approved == approve_finding(desk.services, int(second.finding_id), "another", None)


def test_what_differs_again_in_another_way_is_repaired_again(desk: ReconDesk, sale: Sale) -> None:
    """It has another cause, for all that is known."""
    _drift(desk, sale, 2)
    desk.reconcile(ReconKind.STOCK)
    _drift(desk, sale, 1)

    [second] = desk.later(hours=1).reconcile(ReconKind.STOCK)

    assert (FindingState.REPAIRED, 3) == (second.state, sale.books["issued_quantity"])


def test_a_recount_that_would_pass_the_total_is_refused(desk: ReconDesk, sale: Sale) -> None:
    """More coupons than the total are for a person; the counter stays as it is."""
    named = difference(template_id=sale.template_id, repair=RepairName.RECOUNT_TEMPLATE)
    desk.record([named])
    desk.execute("UPDATE coupon_template SET issued_quantity = 1, total_quantity = 2")
    [finding] = desk.findings()

    with pytest.raises(Conflict) as refusal:
        repair_finding(desk.services, int(finding.finding_id), FindingState.REPAIRED, "another")

    assert ("OVER_ISSUED", 3) == (refusal.value.code, refusal.value.evidence["issued"])
    assert 1 == sale.books["issued_quantity"]


def test_a_repair_that_is_refused_leaves_its_finding_open(desk: ReconDesk, sale: Sale) -> None:
    """With the reason, and without a change; a person who approves it is told the same."""
    lock = difference(
        "a coupon of u1", "coupon_held_by_no_order", repair=RepairName.FREE_COUPON, user_id="u1", order_no="O-1",
        coupon_id=5, template_id=sale.template_id,
    )  # fmt: skip
    run = desk.record([lock], ReconKind.STATE)

    repaired = repair_safe_findings(desk.services, int(run.run_id))

    [finding] = desk.findings()
    assert (0, FindingState.OPEN) == (repaired, finding.state)
    assert finding.outcome and "COUPON_NOT_FOUND" == finding.outcome["refused"]
    with pytest.raises(Conflict) as refusal:
        approve_finding(desk.services, int(finding.finding_id), CLERK, None)
    assert "COUPON_NOT_FOUND" == refusal.value.code
    assert [finding] == desk.findings()


def test_scheduled_runs_happen_once_for_each_logical_instant(desk: ReconDesk, sale: Sale) -> None:
    """The task may come twice, or be sent again after a crash."""
    logical_at = desk.now - timedelta(minutes=5)

    for _ in range(2):
        for kind in (ReconKind.STOCK, ReconKind.STATE, ReconKind.BATCHES):
            reconcile_due(desk.services, kind, logical_at)

    assert [("batches", "done", 1), ("state", "done", 1), ("stock", "done", 1)] == desk.rows(
        "SELECT kind, status, attempt_count FROM recon_run ORDER BY kind"
    )


def test_forgotten_runs_are_sent_again(desk: ReconDesk, post: PostBox) -> None:
    """Those that nobody began, and those whose worker died; not those that are under way or done."""
    run_id = desk.ask(ReconKind.STOCK)

    soon = sweep_reconciliations(desk.services)
    late = sweep_reconciliations(desk.later(minutes=2).services)
    desk.execute("UPDATE recon_run SET status = 'running', started_at = :now", now=desk.now)
    begun = sweep_reconciliations(desk.later(minutes=2).services)
    died = sweep_reconciliations(desk.later(seconds=int(BROKEN_OFF.total_seconds())).services)
    desk.reconcile(ReconKind.STOCK, as_of=datetime.now(UTC))

    assert (0, 1, 0, 1) == (soon, late, begun, died)
    assert [run_reconciliation(run_id)] * 2 == [task for task in post.sent if isinstance(task, Task)]


def test_a_run_that_died_before_its_repairs_is_sent_again(desk: ReconDesk, sale: Sale, post: PostBox) -> None:
    """Until they are done, or refused."""
    _drift(desk, sale, 2)
    repair = difference(
        f"template {sale.template_id} issued", repair=RepairName.RECOUNT_TEMPLATE, template_id=sale.template_id
    )
    run = desk.record([repair])
    post.sent.clear()

    soon = sweep_reconciliations(desk.services)
    late = sweep_reconciliations(desk.later(minutes=21).services)
    [task] = post.sent
    perform_run(desk.services, int(run.run_id))
    done = sweep_reconciliations(desk.later(minutes=1).services)

    assert (0, 1, 0, run_reconciliation(int(run.run_id))) == (soon, late, done, task)
    assert [FindingState.REPAIRED] == [finding.state for finding in desk.findings()]
    assert 3 == sale.books["issued_quantity"]


def test_a_repair_that_breaks_keeps_no_other_waiting(desk: ReconDesk, sale: Sale) -> None:
    """It is told in the log and on the finding, and not tried again before the next run."""
    _drift(desk, sale, 2)
    run = desk.record([
        difference("nothing", "batch_stuck", repair=RepairName.WAKE_BATCH),
        difference("a template", repair=RepairName.RECOUNT_TEMPLATE, template_id=sale.template_id),
    ])  # fmt: skip

    repaired = repair_safe_findings(desk.services, int(run.run_id))

    states = {finding.finding_class: (finding.state, bool(finding.outcome)) for finding in desk.findings()}
    assert 1 == repaired
    assert {"batch_stuck": ("open", True), "issued_counter_differs": ("repaired", True)} == states
    assert 0 == sweep_reconciliations(desk.later(minutes=21).services)


def test_an_amount_that_nobody_has_read_is_not_approved(desk: ReconDesk, sale: Sale) -> None:
    """A later run has found another one."""
    desk.record([
        difference(
            amount_minor=500, currency="CNY", repair=RepairName.RECOUNT_TEMPLATE, template_id=sale.template_id
        )
    ])  # fmt: skip
    [finding] = desk.findings()

    with pytest.raises(Conflict) as refusal:
        approve_finding(desk.services, int(finding.finding_id), CLERK, None, 499)
    approved = approve_finding(desk.services, int(finding.finding_id), CLERK, None, 500)

    assert ("FINDING_OUTDATED", {"amount": 500}) == (refusal.value.code, refusal.value.evidence)
    assert FindingState.APPROVED == approved.state


def test_runs_are_forgotten_and_findings_are_not(desk: ReconDesk, sale: Sale) -> None:
    """After ninety days, also when it is asked twice."""
    _drift(desk, sale, 2)
    desk.reconcile(ReconKind.STOCK)

    kept = forget_runs(desk.services, desk.now + timedelta(days=89))
    gone = [forget_runs(desk.services, desk.now + timedelta(days=91)) for _ in range(2)]

    assert (0, [1, 0]) == (kept, gone)
    assert [(0, 0, 1)] == desk.rows(
        "SELECT (SELECT count(*) FROM recon_run), (SELECT count(*) FROM recon_run_finding),"
        " (SELECT count(*) FROM recon_finding)"
    )
