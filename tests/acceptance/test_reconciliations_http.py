"""Reconciliations and findings over HTTP (API.md, Back office)."""

from __future__ import annotations

import csv
import io

import pytest

from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import run_reconciliation
from tests.support.http_caller import Caller
from tests.support.http_shop import Shop
from tests.support.reconciling import ReconDesk, difference

RUNS = "/v1/reconciliations"


@pytest.fixture
def desk(services: Services) -> ReconDesk:
    """A clerk on the 12th of November."""
    return ReconDesk(services)


@pytest.fixture
def clerk(desk: ReconDesk) -> Caller:
    """An administrator at the clerk's time."""
    return Shop(desk.services).caller("admin")


def test_a_reconciliation_is_asked_for_and_handed_to_a_worker(clerk: Caller, desk: ReconDesk, post: object) -> None:
    """Asked for the same moment again, it is the same one; its list and itself say how it stands."""
    asked = clerk.ask("POST", RUNS, {"kind": "stock", "as_of": "2026-11-12T08:00:00+08:00"})
    again = clerk.ask("POST", RUNS, {"kind": "stock", "as_of": "2026-11-12T00:00:00Z"})
    other = clerk.ask("POST", RUNS, {"kind": "orders", "date": "2026-11-11"})

    assert (202, 202, 202) == (asked.status, again.status, other.status)
    run = asked.json
    assert (again.json, "queued", "2026-11-12T00:00:00Z", None, None, []) == (
        run, run["status"], run["as_of"], run["date"], run["found"], run["classes"],
    )  # fmt: skip
    assert ("orders", "2026-11-11") == (other.json["kind"], other.json["date"])
    assert run_reconciliation(int(run["run_id"])) in post.sent  # type: ignore[attr-defined]
    assert run == clerk.ask("GET", f"{RUNS}/{run['run_id']}").ok()
    listed = clerk.ask("GET", f"{RUNS}?kind=stock").ok()["items"]
    assert [{name: value for name, value in run.items() if name != "classes"}] == listed


def test_findings_are_listed_by_what_is_asked(clerk: Caller, desk: ReconDesk) -> None:
    """By state, kind, class and run, in pages; and all of it as a file."""
    differences = [
        difference(amount_minor=70, currency="CNY", template_id=7),
        difference("template 8", "=HYPERLINK()", user_id="u-1", coupon_id=2**60),
    ]
    run = desk.record(differences)
    desk.record([difference("batch 9", "batch_stuck")], ReconKind.BATCHES)

    first = clerk.ask("GET", f"/v1/findings?run_id={run.run_id}&limit=1").ok()
    second = clerk.ask("GET", f"/v1/findings?run_id={run.run_id}&limit=1&cursor={first['next_cursor']}").ok()

    assert None is second["next_cursor"]
    found = [*second["items"], *first["items"]]
    assert {"=HYPERLINK()", "issued_counter_differs"} == {finding["class"] for finding in found}
    assert found[0] == clerk.ask("GET", f"/v1/findings/{found[0]['finding_id']}").ok()
    for query, count in (
        ("", 3), ("state=open", 3), ("state=ignored", 0), ("kind=batches", 1), ("class=batch_stuck", 1),
        ("date=2026-11-11", 0),
    ):  # fmt: skip
        assert count == len(clerk.ask("GET", f"/v1/findings?{query}").ok()["items"])
    file = clerk.ask("GET", f"/v1/findings.csv?run_id={run.run_id}")
    lines = {line["subject"]: line for line in csv.DictReader(io.StringIO(file.body.decode()))}
    assert ("70", "CNY", '{"booked": 3}') == tuple(
        lines["template 7"][name] for name in ("amount", "currency", "evidence")
    )
    assert ("'=HYPERLINK()", str(2**60)) == (lines["template 8"]["class"], lines["template 8"]["coupon_no"])
    counts = clerk.ask("GET", f"{RUNS}/{run.run_id}").ok()["classes"]
    assert [("issued_counter_differs", "open", 1, 70, "CNY")] == [
        tuple(each[name] for name in ("class", "state", "count", "amount", "currency"))
        for each in counts if each["amount"]
    ]  # fmt: skip


def test_a_finding_is_ignored_with_a_word(clerk: Caller, desk: ReconDesk) -> None:
    """Once, by whom, when and why; what proposes nothing cannot be approved."""
    desk.record([difference()])
    [finding] = clerk.ask("GET", "/v1/findings").ok()["items"]
    path = f"/v1/findings/{finding['finding_id']}"

    clerk.ask("POST", f"{path}/approve", {}).problem(409, "NO_REPAIR")
    ignored = clerk.ask("POST", f"{path}/ignore", {"comment": " a test of ours "}).ok()
    again = clerk.ask("POST", f"{path}/ignore", {"comment": "another word"}).ok()

    assert ("ignored", "a test of ours", ignored) == (ignored["state"], ignored["comment"], again)
    assert ignored["decided_by"] and ignored["closed_at"]
    assert "ignored" == clerk.ask("POST", f"{path}/approve", {}).problem(409, "FINDING_CLOSED")["state"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "kind"),
        ({"kind": "money"}, "kind"),
        ({"kind": "orders"}, "date"),
        ({"kind": "orders", "date": "11.11.2026"}, "date"),
        ({"kind": "orders", "date": "2027-01-01"}, "date"),
        ({"kind": "stock", "date": "2026-11-11"}, "date"),
        ({"kind": "stock", "as_of": "2026-11-11T00:00:00"}, "as_of"),
        ({"kind": "stock", "as_of": "2026-11-12T00:00:01Z"}, "as_of"),
        ({"kind": "stock", "who": "me"}, "who"),
    ],
)
def test_what_cannot_be_compared_is_named(clerk: Caller, body: dict[str, str], field: str) -> None:
    """Nothing is written down."""
    assert [field] == clerk.ask("POST", RUNS, body).bad_fields()
    assert [] == clerk.ask("GET", RUNS).ok()["items"]


def test_bad_addresses_and_words_are_refused(clerk: Caller, desk: ReconDesk) -> None:
    """Unknown things, words that say nothing, cursors that no page gave."""
    desk.record([difference()])

    clerk.ask("GET", f"{RUNS}/7").problem(404, "RECONCILIATION_NOT_FOUND")
    for path in ("/v1/findings/7", "/v1/findings/x"):
        clerk.ask("GET", path).problem(404, "FINDING_NOT_FOUND")
        clerk.ask("POST", f"{path}/approve", {}).problem(404, "FINDING_NOT_FOUND")
        clerk.ask("POST", f"{path}/ignore", {"comment": "x"}).problem(404, "FINDING_NOT_FOUND")
    for body in ({}, {"comment": " "}, {"comment": "x" * 501}, {"comment": None}):
        assert ["comment"] == clerk.ask("POST", "/v1/findings/1/ignore", body).bad_fields()
    for query, field in (("state=shut", "state"), ("kind=x", "kind"), ("date=x", "date"), ("run_id=x", "run_id")):
        assert [field] == clerk.ask("GET", f"/v1/findings?{query}").bad_fields()
    assert ["cursor"] == clerk.ask("GET", "/v1/findings?cursor=x").bad_fields()


def test_reconciliation_is_an_administrators(desk: ReconDesk) -> None:
    """No other scope sees or decides anything."""
    shop = Shop(desk.services)

    for caller in (shop.caller("storefront", "orders", "ops"), shop.caller()):
        for method, address in (
            ("GET", RUNS), ("POST", RUNS), ("GET", f"{RUNS}/1"), ("GET", "/v1/findings"), ("GET", "/v1/findings.csv"),
            ("GET", "/v1/findings/1"), ("POST", "/v1/findings/1/approve"), ("POST", "/v1/findings/1/ignore"),
        ):  # fmt: skip
            assert caller.ask(method, address).status in (401, 403)
