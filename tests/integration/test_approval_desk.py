"""Two agree on what costs much: once, by other hands, exactly as asked, after any crash."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.approval import desk
from coupon_workers.approval.reading import ApprovalAnswer, read_approvals
from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate import ClaimGate
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.runtime.clock import rfc3339, utc_now
from coupon_workers.runtime.services import Services
from coupon_workers.templates import template_reading as reading
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_answer import TemplateAnswer
from coupon_workers.templates.template_change import patch_template
from coupon_workers.templates.template_desk import archive_template, create_template, publish_template
from tests.conftest import PostBox
from tests.support.crash import dies_at

MAKER, CHANGER, ASKER, APPROVER = "key-made", "key-changed", "key-asked", "key-approves"


@pytest.fixture
def bounded(services: Services) -> Services:
    """More than 200.00 CNY is decided by two."""
    return replace(services, settings=services.settings.model_copy(update={"approval_budgets": '{"CNY": 20000}'}))


def draft(services: Services, **fields: Any) -> int:
    """Ten units of 20.00 CNY: exactly the budget."""
    now = utc_now()
    body = {
        "name": "desk",
        "type": "amount_off",
        "currency": "CNY",
        "amount": 2000,
        "total_quantity": 10,
        "claim_start": rfc3339(now - timedelta(hours=1)),
        "claim_end": rfc3339(now + timedelta(days=1)),
        "validity": {"mode": "relative", "days": 7},
    }
    made = create_template(services, TemplateBody.model_validate(body | fields), MAKER)
    return int(made.template_id)


def handed_in(services: Services, **fields: Any) -> int:
    """A draft above the budget that waits."""
    template_id = draft(services, **{"total_quantity": 11, **fields})
    assert "pending_approval" == publish_template(services, template_id, ASKER).status
    return template_id


def growing(services: Services, total: int = 11) -> int:
    """A template that is published, with a change that waits."""
    template_id = draft(services)
    publish_template(services, template_id, ASKER)
    answer = patch_template(services, template_id, {"total_quantity": total}, CHANGER)
    assert isinstance(answer, ApprovalAnswer)
    return template_id


def total_of(services: Services, template_id: int) -> int:
    """The template's total now."""
    return reading.read_one(services, template_id).total_quantity


def inbox(services: Services) -> list[ApprovalAnswer]:
    """What waits."""
    return [each for each in read_approvals(services, limit=50) if each.state == "pending"]


def logged(services: Services) -> list[str]:
    """The actions of the audit log, oldest first."""
    with services.engine.connect() as connection:
        return list(connection.scalars(text("SELECT action FROM audit_log ORDER BY audit_id")))


def test_a_draft_within_the_budget_is_published_by_one(bounded: Services) -> None:
    """As it was before there were budgets."""
    assert "active" == publish_template(bounded, draft(bounded), ASKER).status


def test_an_approved_draft_is_open(bounded: Services) -> None:
    """By another key; preheated, so that the first claim is taken."""
    template_id = handed_in(bounded, approval_required=False)

    approved = desk.approve(bounded, template_id, APPROVER, comment="fine")

    gate = ClaimGate(bounded.settings, bounded.next_id)
    assert ("active", True) == (approved.status, approved.stock.warmed)
    assert ClaimOutcome.ACCEPTED is gate.claim(ClaimRequest(template_id, "ann", "r1")).outcome
    [decided] = read_approvals(bounded, limit=5)
    assert ("approved", ["budget"], ASKER, APPROVER, "fine", 0, 22_000, 20_000) == (
        decided.state, decided.reasons, decided.asked_by, decided.decided_by, decided.comment,
        decided.cost_before, decided.cost_after, decided.budget,
    )  # fmt: skip


@pytest.mark.parametrize("decide", [desk.approve, lambda *given: desk.reject(*given, "no")])
@pytest.mark.parametrize(
    ("key", "why"), [(MAKER, "created"), (CHANGER, "changed the template last"), (ASKER, "asked for it")]
)
def test_whoever_had_a_hand_in_it_does_not_decide(
    bounded: Services, decide: Callable[..., TemplateAnswer], key: str, why: str
) -> None:
    """Each is told which hand it was; the request goes on waiting."""
    template_id = draft(bounded, total_quantity=11)
    patch_template(bounded, template_id, {"name": "changed"}, CHANGER)
    publish_template(bounded, template_id, ASKER)

    with pytest.raises(Conflict, match=why) as refusal:
        decide(bounded, template_id, key)

    assert "OWN_TEMPLATE" == refusal.value.code
    assert "pending_approval" == reading.read_one(bounded, template_id).status
    assert 1 == len(inbox(bounded))


def test_a_rejected_draft_is_a_draft_again_with_the_reason(bounded: Services) -> None:
    """It is changed, and handed in again."""
    template_id = handed_in(bounded)

    rejected = desk.reject(bounded, template_id, APPROVER, "half of it, please")
    patch_template(bounded, template_id, {"total_quantity": 10}, MAKER)

    assert "draft" == rejected.status
    assert ["half of it, please"] == [each.comment for each in read_approvals(bounded, limit=5)]
    assert "active" == publish_template(bounded, template_id, MAKER).status


def test_what_waits_is_not_changed_but_withdrawn(bounded: Services) -> None:
    """What is approved is what was handed in."""
    template_id = handed_in(bounded)
    [request] = inbox(bounded)

    with pytest.raises(Conflict) as refusal:
        patch_template(bounded, template_id, {"name": "other"}, MAKER)
    unchanged = patch_template(bounded, template_id, {"name": "desk"}, MAKER)
    withdrawn = desk.withdraw(bounded, template_id, ASKER)

    assert ("APPROVAL_PENDING", {"approval_id": request.approval_id}) == (refusal.value.code, refusal.value.evidence)
    assert isinstance(unchanged, TemplateAnswer)
    assert ("draft", []) == (withdrawn.status, inbox(bounded))


def test_two_approvers_at_once_have_one_effect(bounded: Services) -> None:
    """One has approved it; the others are told so."""
    template_id = growing(bounded, total=30)

    def approve(number: int) -> str:
        try:
            return str(desk.approve(bounded, template_id, f"{APPROVER}-{number}").total_quantity)
        except Conflict as refusal:
            return f"{refusal.code} {refusal.evidence['state']}"

    with ThreadPoolExecutor(6) as pool:
        answers = sorted(pool.map(approve, range(6)))

    assert ["30", *["NOTHING_PENDING approved"] * 5] == answers
    assert (30, 1) == (total_of(bounded, template_id), logged(bounded).count("template.approve"))
    assert 30 == reading.read_one(bounded, template_id).stock.remaining


def test_the_same_key_approves_again_and_is_answered_again(bounded: Services) -> None:
    """Its first answer was lost."""
    template_id = handed_in(bounded)

    first, second = (desk.approve(bounded, template_id, APPROVER) for _ in range(2))

    assert (first.version, "active") == (second.version, second.status)
    assert 1 == logged(bounded).count("template.approve")


def test_a_change_waits_whole_and_is_applied_exactly(bounded: Services) -> None:
    """Nothing of it before, all of it after; the inbox shows both."""
    template_id = draft(bounded)
    publish_template(bounded, template_id, ASKER)
    end = rfc3339(utc_now().replace(microsecond=0) + timedelta(days=9))

    asked = patch_template(bounded, template_id, {"name": "more", "total_quantity": 50, "claim_end": end}, CHANGER)
    before = reading.read_one(bounded, template_id)
    after = desk.approve(bounded, template_id, APPROVER)

    assert isinstance(asked, ApprovalAnswer)
    assert {"name": ("desk", "more"), "total_quantity": (10, 50)}.items() <= {
        change.field: (change.before, change.after) for change in asked.changes
    }.items()
    assert (20_000, 100_000, ["budget"]) == (asked.cost_before, asked.cost_after, asked.reasons)
    assert ("desk", 10) == (before.name, before.total_quantity)
    assert ("more", 50, end, 50) == (after.name, after.total_quantity, rfc3339(after.claim_end), after.stock.total)


def test_one_change_waits_at_a_time(bounded: Services) -> None:
    """The same again is the same request; another is refused; what costs nothing goes through."""
    template_id = growing(bounded)
    [first] = inbox(bounded)

    again = patch_template(bounded, template_id, {"total_quantity": 11}, MAKER)
    with pytest.raises(Conflict) as refusal:
        patch_template(bounded, template_id, {"total_quantity": 12}, CHANGER)
    free = patch_template(bounded, template_id, {"total_quantity": 9, "name": "smaller"}, CHANGER)

    assert isinstance(again, ApprovalAnswer)
    assert (first.approval_id, "CHANGE_PENDING") == (again.approval_id, refusal.value.code)
    assert {"approval_id": first.approval_id} == refusal.value.evidence
    assert isinstance(free, TemplateAnswer)
    assert [(9, 11)] == [(each.before, each.after) for each in inbox(bounded)[0].changes]


@pytest.mark.parametrize("end", [desk.withdraw, lambda *given: desk.reject(*given, "no")])
def test_a_change_that_is_rejected_or_withdrawn_never_was(
    bounded: Services, end: Callable[..., TemplateAnswer]
) -> None:
    """The template sells on as it did."""
    template_id = growing(bounded)

    answer = end(bounded, template_id, APPROVER)

    assert ("active", 10, []) == (answer.status, answer.total_quantity, inbox(bounded))
    with pytest.raises(Conflict, match="nothing waits"):
        desk.approve(bounded, template_id, "key-other")


def test_a_change_that_no_longer_fits_is_refused_and_goes_on_waiting(services: Services) -> None:
    """A later end with fewer units was asked for; meanwhile more are taken."""
    template_id = draft(services, approval_required=True)
    publish_template(services, template_id, ASKER)
    desk.approve(services, template_id, APPROVER)
    end = rfc3339(utc_now() + timedelta(days=9))
    patch_template(services, template_id, {"total_quantity": 2, "claim_end": end}, CHANGER)
    gate = ClaimGate(services.settings, services.next_id)
    for user in ("a", "b", "c"):
        gate.claim(ClaimRequest(template_id, user, "r1"))

    with pytest.raises(Conflict) as refusal:
        desk.approve(services, template_id, APPROVER)

    assert ("BELOW_TAKEN", 3) == (refusal.value.code, refusal.value.evidence["queued"])
    assert (10, 1) == (total_of(services, template_id), len(inbox(services)))


def test_an_approver_decides_about_what_he_has_seen(bounded: Services) -> None:
    """It was withdrawn, and another put in its place."""
    template_id = growing(bounded)
    [seen] = inbox(bounded)
    desk.withdraw(bounded, template_id, CHANGER)
    patch_template(bounded, template_id, {"total_quantity": 1_000_000}, CHANGER)

    with pytest.raises(Conflict) as refusal:
        desk.approve(bounded, template_id, APPROVER, approval_id=int(seen.approval_id))

    assert ("APPROVAL_CHANGED", 10) == (refusal.value.code, total_of(bounded, template_id))


def test_what_was_asked_of_an_archived_template_waits_no_more(bounded: Services) -> None:
    """There is nothing to decide."""
    template_id = handed_in(bounded)

    archive_template(bounded, template_id)

    assert ([], ["withdrawn"]) == (inbox(bounded), [each.state for each in read_approvals(bounded, limit=5)])


def test_nothing_was_asked_for(services: Services) -> None:
    """Nor is there a template of every number."""
    with pytest.raises(Conflict, match="nothing was asked for"):
        desk.approve(services, draft(services), APPROVER)
    with pytest.raises(NotFound):
        desk.approve(services, 1, APPROVER)


@pytest.mark.parametrize("point", ["approve.before_commit", "approve.after_commit"])
def test_an_approval_that_dies_is_whole_or_not_at_all(
    bounded: Services, post: PostBox, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Before the commit it waits still; after it the template is published, and loaded when it is asked again."""
    template_id = handed_in(bounded)

    with dies_at(monkeypatch, point):
        desk.approve(bounded, template_id, APPROVER)
    left = len(inbox(bounded))
    approved = desk.approve(bounded, template_id, APPROVER)

    assert (point == "approve.before_commit") == bool(left)
    assert ("active", True) == (approved.status, approved.stock.warmed)
    assert 1 == logged(bounded).count("template.approve")


def test_the_log_tells_what_was_asked_and_decided(bounded: Services) -> None:
    """In the order in which it was done; the decision says what was granted."""
    template_id = growing(bounded)
    desk.approve(bounded, template_id, APPROVER, comment="yes")

    with bounded.engine.connect() as connection:
        row = connection.execute(
            text("SELECT subject, before, after FROM audit_log WHERE action = 'template.approve'")
        ).one()

    expected = ["template.create", "template.publish", "template.ask_approval", "template.approve"]
    assert expected == logged(bounded)
    assert (f"template:{template_id}", {"total_quantity": 10}) == (row.subject, row.before)
    assert ({"total_quantity": 11}, "yes") == (row.after["fields"], row.after["comment"])
