"""The life of a template: every status and every action, and what the clock makes of a stored word."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.errors import Conflict
from coupon_workers.schema.coupon_template import TEMPLATE_STATUSES
from coupon_workers.templates.template_status import (
    TemplateAction,
    TemplateStatus,
    effective_status,
    status_after,
    status_by_clock,
)

START = datetime(2026, 11, 11, tzinfo=UTC)
END = START + timedelta(days=1)
BEFORE, DURING, AFTER = START - timedelta(milliseconds=1), START, END

NOT_ALLOWED = "INVALID_STATUS"
NOTHING_TO_DO = None
TABLE: dict[str, dict[str, str | None]] = {
    # action:   draft, pending_approval, scheduled, active, paused, ended, offline, archived
    "publish": {"draft": "active"},
    "approve": {"pending_approval": "active"},
    "hand_back": {"pending_approval": "draft"},
    "pause": {"scheduled": "paused", "active": "paused", "paused": NOTHING_TO_DO},
    "resume": {"paused": "active"},
    "offline": {
        "scheduled": "offline",
        "active": "offline",
        "paused": "offline",
        "ended": "offline",
        "offline": NOTHING_TO_DO,
    },
    "archive": {
        "draft": "archived",
        "pending_approval": "archived",
        "scheduled": "archived",
        "active": "archived",
        "paused": "archived",
        "ended": "archived",
        "offline": "archived",
        "archived": NOTHING_TO_DO,
    },
}
NOW = {"scheduled": BEFORE, "active": DURING, "ended": AFTER}


def row(status: str) -> dict[str, Any]:
    """As much of a template's row as its status depends on."""
    return {"status": status, "claim_start": START, "claim_end": END}


def test_the_words_are_those_of_the_schema() -> None:
    """In the order of a template's life."""
    assert TEMPLATE_STATUSES == tuple(TemplateStatus)


@pytest.mark.parametrize("status", TEMPLATE_STATUSES)
@pytest.mark.parametrize("action", list(TemplateAction))
def test_every_action_from_every_status_goes_where_the_table_says(action: TemplateAction, status: str) -> None:
    """Or is refused with the present status."""
    expected = TABLE[action].get(status, NOT_ALLOWED)

    try:
        after: str | None = status_after(action, row(status), NOW.get(status, DURING))
    except Conflict as refusal:
        after = refusal.code
        assert {"current_status": status} == refusal.evidence

    assert expected == after


@pytest.mark.parametrize("stored", ["scheduled", "active", "ended"])
@pytest.mark.parametrize(
    ("now", "expected"),
    [(BEFORE, "scheduled"), (START, "active"), (END - timedelta.resolution, "active"), (END, "ended")],
)
def test_the_clock_decides_between_scheduled_active_and_ended(stored: str, now: datetime, expected: str) -> None:
    """Whichever of the three words is stored; the window is half-open."""
    assert expected == effective_status(row(stored), now)


@given(
    st.sampled_from(sorted(set(TEMPLATE_STATUSES) - {"scheduled", "active", "ended"})),
    st.datetimes(timezones=st.just(UTC)),
)
def test_the_clock_moves_no_other_status(stored: str, now: datetime) -> None:
    """A pause stays a pause when its window is over."""
    assert stored == effective_status(row(stored), now)


@pytest.mark.parametrize("action", [TemplateAction.PUBLISH, TemplateAction.RESUME])
@pytest.mark.parametrize("now", [BEFORE, DURING, AFTER])
def test_publishing_and_resuming_lead_to_what_the_clock_says(action: TemplateAction, now: datetime) -> None:
    """Scheduled before the window, active in it, ended after it."""
    left = "draft" if action is TemplateAction.PUBLISH else "paused"

    assert status_by_clock(START, END, now) == status_after(action, row(left), now)


def test_a_template_that_needs_approval_is_handed_in() -> None:
    """Publishing alone does not open it."""
    after = status_after(TemplateAction.PUBLISH, row("draft"), DURING, by_two=True)

    assert TemplateStatus.PENDING_APPROVAL == after


def test_an_ended_template_cannot_be_paused_whatever_word_is_stored() -> None:
    """What is refused is answered with what is true by the clock."""
    with pytest.raises(Conflict) as refusal:
        status_after(TemplateAction.PAUSE, row("active"), AFTER)

    assert {"current_status": "ended"} == refusal.value.evidence
