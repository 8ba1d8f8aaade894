"""What a run found is written once, known again, and gone when it is gone (DESIGN 3.8)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import partial

import pytest

from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.reconciliation.decision import approve_finding, ignore_finding
from coupon_workers.reconciliation.difference import MOST, Reading
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.reconciliation.record import record_reading
from coupon_workers.reconciliation.run import MOST_ATTEMPTS, perform_run, write_run
from coupon_workers.reconciliation.run_reading import read_run
from coupon_workers.runtime.services import Services
from tests.support.reconciling import CLERK, NOW, ReconDesk, difference

OPEN = ("issued_counter_differs", "template 7", "open")
DAY = date(2026, 11, 11)


@pytest.fixture
def desk(services: Services) -> ReconDesk:
    """A clerk on the 12th."""
    return ReconDesk(services)


def test_what_differs_for_the_first_time_is_opened_and_told(desk: ReconDesk) -> None:
    """With its evidence, its money and its proposal, and as an event for webhooks."""
    run = desk.record([difference(amount_minor=70, currency="CNY", template_id=7)])

    [finding] = desk.findings()
    assert (1, 1, 0, False, "done") == (run.found, run.opened, run.resolved, run.truncated, run.status)
    assert ({"booked": 3}, 70, "CNY", "7", None) == (
        finding.evidence, finding.amount, finding.currency, finding.template_id, finding.repair,
    )  # fmt: skip
    assert ("open", run.run_id, 1) == (finding.state, finding.first_run_id, finding.seen_count)
    [(event, told)] = desk.rows("SELECT event, detail FROM outbox")
    assert ("finding.opened", finding.finding_id, "issued_counter_differs", 70) == (
        event, told["finding_id"], told["class"], told["amount"],
    )  # fmt: skip


def test_what_still_differs_is_the_same_finding(desk: ReconDesk) -> None:
    """Both runs list it; it bears the latest evidence, and is told once."""
    first = desk.record([difference()])
    second = desk.later(hours=1).record([difference(evidence={"booked": 4})])

    [finding] = desk.findings()

    assert (1, 0) == (second.found, second.opened)
    assert (2, {"booked": 4}, first.run_id, second.run_id) == (
        finding.seen_count, finding.evidence, finding.first_run_id, finding.last_run_id,
    )  # fmt: skip
    assert [finding] == desk.findings(run_id=int(first.run_id)) == desk.findings(run_id=int(second.run_id))
    assert [(1,)] == desk.rows("SELECT count(*) FROM outbox")


def test_what_is_gone_is_resolved_and_opened_anew_when_it_comes_back(desk: ReconDesk) -> None:
    """A finding has one life."""
    desk.record([difference()])

    gone = desk.later(hours=1).record([])
    back = desk.later(hours=1).record([difference()])

    assert (1, 1) == (gone.resolved, back.opened)
    assert [(*OPEN[:2], "resolved"), OPEN] == desk.brief()


def test_what_was_not_judged_stays_as_it_is(desk: ReconDesk) -> None:
    """A template under traffic says nothing about its finding of before."""
    desk.record([difference()])

    run = desk.later(hours=1).record([], unjudged=["template 7"])

    assert 0 == run.resolved
    assert [OPEN] == desk.brief()


def test_what_a_reader_comes_upon_twice_is_one_finding(desk: ReconDesk) -> None:
    """As where a number is on two coupons: the run ends all the same."""
    run = desk.record([difference(), difference(evidence={"booked": 4})])

    assert (1, 1, "done") == (run.found, run.opened, run.status)
    assert [OPEN] == desk.brief()


def test_a_list_that_is_not_whole_takes_nothing_for_gone(desk: ReconDesk) -> None:
    """What is not on it may be behind its end."""
    desk.record([difference()])

    run = desk.later(hours=1).record([difference(f"template {number}") for number in range(100, 101 + MOST)])

    assert (True, MOST, MOST, 0) == (run.truncated, run.found, run.opened, run.resolved)


def test_a_run_as_of_an_earlier_moment_changes_no_later_knowledge(desk: ReconDesk) -> None:
    """It lists what it found, and neither ends nor turns back what was seen after it."""
    desk.record([difference(evidence={"booked": 4})])

    before = NOW - timedelta(hours=1)
    run = desk.record([difference(evidence={"booked": 2}), difference("template 8")], as_of=before)
    gone = desk.record([], as_of=before - timedelta(hours=1))

    assert (2, 1, 0) == (run.found, run.opened, gone.resolved)
    assert [{"booked": 4}, {"booked": 3}] == [finding.evidence for finding in reversed(desk.findings())]


@pytest.mark.parametrize("end", ["repaired", "approved", "resolved"])
def test_a_run_as_of_a_moment_before_a_findings_end_does_not_open_it_again(desk: ReconDesk, end: str) -> None:
    """It may have read beside the run that had it repaired, or beside a person: it lists the finding that there was."""
    desk.record([difference()])
    before = desk.later(minutes=5).now
    if end == "resolved":
        desk.later(minutes=5).record([])
    else:
        desk.later(minutes=5).execute(
            "UPDATE recon_finding SET state = :end, closed_at = :now, decided_by = 'x'", end=end, now=desk.now
        )

    same = desk.later(minutes=5).record([difference()], as_of=before)
    otherwise = desk.record([difference(evidence={"booked": 9})], as_of=before + timedelta(seconds=1))
    desk.execute("DELETE FROM recon_finding WHERE state = 'open'")
    again = desk.later(minutes=5).record([difference()])

    assert [(1, 0), (1, 1), (1, 1)] == [(run.found, run.opened) for run in (same, otherwise, again)]
    assert [(*OPEN[:2], end), OPEN] == desk.brief()


def test_kinds_and_days_do_not_resolve_each_others_findings(desk: ReconDesk) -> None:
    """A run speaks of what it looked at."""
    order = difference("order O-1 of u-1", "paid_differs", user_id="u-1", order_no="O-1")
    desk.record([difference()])
    desk.record([order], ReconKind.ORDERS, day=DAY)

    runs = [
        desk.later(hours=1).record([], ReconKind.STATE),
        desk.record([], ReconKind.ORDERS, day=DAY + timedelta(days=1)),
    ]

    assert [0, 0] == [run.resolved for run in runs]
    assert 1 == desk.record([], ReconKind.ORDERS, day=DAY).resolved
    assert [OPEN, ("paid_differs", "order O-1 of u-1", "resolved")] == desk.brief()


def test_what_a_person_ignored_is_opened_again_only_when_it_differs_otherwise(desk: ReconDesk) -> None:
    """The run lists it still."""
    desk.record([difference()])
    [finding] = desk.findings()
    ignore_finding(desk.services, int(finding.finding_id), CLERK, "a test of ours")

    same = desk.later(hours=1).record([difference()])
    other = desk.later(hours=1).record([difference(evidence={"booked": 9})])

    assert (1, 0) == (same.found, same.opened)
    assert (1, 1) == (other.found, other.opened)
    assert [(*OPEN[:2], "ignored"), OPEN] == desk.brief()


def test_runs_that_end_at_once_open_a_difference_once(desk: ReconDesk) -> None:
    """Both list the one finding."""
    runs = [desk.ask(as_of=NOW - timedelta(minutes=number)) for number in range(4)]
    for run_id in runs:
        desk.begin(run_id)
    reading = Reading([difference(), difference("template 8")], 2)

    with ThreadPoolExecutor(4) as pool:
        ended = [
            pool.submit(record_reading, desk.services, run_id, ReconKind.STOCK, NOW, None, reading) for run_id in runs
        ]
    counts = [each.result()["opened"] for each in ended]

    assert [0, 0, 0, 2] == sorted(counts)
    assert [2, 2, 2, 2] == [len(desk.findings(run_id=run_id)) for run_id in runs]


def test_a_run_that_has_ended_is_not_written_again(desk: ReconDesk) -> None:
    """A second worker's reading of it comes to nothing."""
    run = desk.record([difference()])

    again = record_reading(desk.services, int(run.run_id), ReconKind.STOCK, NOW, None, Reading([], 0))

    assert {} == again
    assert run == read_run(desk.services, int(run.run_id))
    assert [OPEN] == desk.brief()


def test_a_moment_is_compared_once(desk: ReconDesk) -> None:
    """Whoever asks for it again has the run that there is, also at the same time."""
    with ThreadPoolExecutor(4) as pool:
        runs = set(pool.map(lambda _: desk.ask(), range(8)))

    assert 1 == len(runs)
    assert runs != {desk.ask(ReconKind.STATE)}
    assert desk.ask(ReconKind.ORDERS, day=DAY) == desk.ask(ReconKind.ORDERS, day=DAY)
    assert desk.ask(ReconKind.ORDERS, day=DAY) != desk.ask(ReconKind.ORDERS, day=DAY - timedelta(days=1))


def test_a_request_that_is_sent_again_later_has_its_run(desk: ReconDesk) -> None:
    """Its identity is the same, its now is not."""
    run_id = desk.ask()

    again = write_run(desk.services, run_id, ReconKind.STOCK, NOW - timedelta(hours=1), None, CLERK)

    assert run_id == again
    assert [(1,)] == desk.rows("SELECT count(*) FROM recon_run")


@pytest.mark.parametrize(
    ("kind", "as_of", "day", "field"),
    [
        (ReconKind.ORDERS, None, None, "date"),
        (ReconKind.STOCK, None, DAY, "date"),
        (ReconKind.STATE, NOW + timedelta(seconds=1), None, "as_of"),
        (ReconKind.STATE, datetime(1, 1, 1, tzinfo=UTC), None, "as_of"),
        (ReconKind.ORDERS, None, DAY + timedelta(days=3), "date"),
    ],
)
def test_a_moment_that_cannot_be_compared_is_named(
    desk: ReconDesk, kind: ReconKind, as_of: datetime | None, day: date | None, field: str
) -> None:
    """Nothing is written down."""
    with pytest.raises(InvalidInput) as refusal:
        desk.ask(kind, as_of, day)

    assert [field] == [name for name, _ in refusal.value.errors]
    assert [(0,)] == desk.rows("SELECT count(*) FROM recon_run")


def test_a_run_that_never_ends_is_given_up(desk: ReconDesk) -> None:
    """After some attempts it is failed, and says so."""
    run_id = desk.ask()
    desk.execute("UPDATE recon_run SET status = 'running', attempt_count = :most", most=MOST_ATTEMPTS)

    perform_run(desk.services, run_id)

    run = read_run(desk.services, run_id)
    assert ("failed", f"given up after {MOST_ATTEMPTS} attempts") == (run.status, run.reason)


def test_a_run_that_many_take_up_at_once_is_not_given_up(desk: ReconDesk) -> None:
    """Asked for again and again while it is under way: as many as may try do, and one of them ends it."""
    run_id = desk.ask()
    desk.execute("UPDATE recon_run SET status = 'running', attempt_count = :n, started_at = :now", n=4, now=desk.now)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: perform_run(desk.services, run_id), range(4)))

    assert "done" == read_run(desk.services, run_id).status
    assert [(MOST_ATTEMPTS,)] == desk.rows("SELECT attempt_count FROM recon_run")


def test_what_has_ended_is_not_decided_again(desk: ReconDesk) -> None:
    """The same decision again is answered as it stands; another one is told how it stands; one without a repair
    cannot be approved."""
    desk.record([difference(), difference("template 8")])
    second, first = (int(finding.finding_id) for finding in desk.findings())
    ignored = ignore_finding(desk.services, first, CLERK, "ours")

    assert ignored == ignore_finding(desk.services, first, "another", "again")
    for decide, code in (
        (partial(approve_finding, desk.services, first, CLERK, None), "FINDING_CLOSED"),
        (partial(approve_finding, desk.services, second, CLERK, None), "NO_REPAIR"),
    ):
        with pytest.raises(Conflict) as refusal:
            decide()
        assert code == refusal.value.code
    with pytest.raises(NotFound):
        ignore_finding(desk.services, 99, CLERK, "x")
    assert [FindingState.IGNORED, FindingState.OPEN] == [finding.state for finding in reversed(desk.findings())]
