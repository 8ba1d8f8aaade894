"""Templates in PostgreSQL: drafts, pages, guarded changes, numbers that are unique."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from coupon_workers.errors import Conflict, NotFound
from coupon_workers.runtime.database import transaction
from coupon_workers.templates import template_store as store
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_row import Row, columns_of, fields_of
from coupon_workers.templates.template_status import TemplateStatus

START = datetime(2026, 11, 11, tzinfo=UTC)
BODY: dict[str, Any] = {
    "name": "满100减20",
    "type": "amount_off",
    "currency": "CNY",
    "amount": 2**53 - 1,
    "total_quantity": 1000,
    "claim_start": START.isoformat(),
    "claim_end": (START + timedelta(days=1)).isoformat(),
    "validity": {"mode": "fixed", "from": "2026-11-11T00:00:00.001Z", "to": "2026-12-01T00:00:00Z"},
    "scope": {"products": {"include": ["p9"], "exclude": []}, "user_tags": ["vip"]},
    "channels_claim": ["app", "h5"],
}


def made(engine: Engine, template_id: int, **fields: Any) -> Row:
    """A new draft."""
    with transaction(engine) as connection:
        return store.insert_template(
            connection, template_id, columns_of(TemplateBody.model_validate(BODY | fields)), "k"
        )[0]


def moved(engine: Engine, row: Row, status: TemplateStatus) -> Row:
    """The template in another status."""
    with transaction(engine) as connection:
        return store.move_template(connection, row, status)


def test_every_field_comes_back_as_it_was_stored(engine: Engine) -> None:
    """Large money, objects, lists, instants."""
    template = TemplateBody.model_validate(BODY)

    made(engine, 7)

    with transaction(engine) as connection:
        row = store.read_template(connection, 7)
    assert template.model_copy(update={"template_no": "T7"}) == TemplateBody.model_validate(fields_of(row))
    assert ("draft", 1, 0, "k") == (row["status"], row["version"], row["pause_epoch"], row["created_by"])


def test_a_number_is_taken_once(engine: Engine) -> None:
    """By a new template or by a change, the second is told."""
    made(engine, 1, template_no="TPL-1")
    other = made(engine, 2)

    with pytest.raises(Conflict) as refusal:
        made(engine, 3, template_no="TPL-1")
    with pytest.raises(Conflict) as change, transaction(engine) as connection:
        store.change_template(connection, other, {"template_no": "TPL-1"})

    assert ("TEMPLATE_NO_TAKEN", "TEMPLATE_NO_TAKEN") == (refusal.value.code, change.value.code)


def test_an_unknown_template_is_not_found(engine: Engine) -> None:
    """Whether it is read or locked."""
    for ask in (store.read_template, store.lock_template):
        with pytest.raises(NotFound) as refusal, transaction(engine) as connection:
            ask(connection, 404)
        assert "TEMPLATE_NOT_FOUND" == refusal.value.code


def test_a_change_makes_the_next_version(engine: Engine) -> None:
    """The instant of change moves, that of creation does not."""
    row = made(engine, 1)

    with transaction(engine) as connection:
        changed = store.change_template(connection, row, {"name": "N"})

    assert ("N", 2, row["created_at"]) == (changed["name"], changed["version"], changed["created_at"])
    assert row["updated_at"] < changed["updated_at"]


def test_a_change_of_what_was_changed_meanwhile_is_refused(engine: Engine) -> None:
    """The answer says what the template is now."""
    row = made(engine, 1)
    moved(engine, row, TemplateStatus.ACTIVE)

    with pytest.raises(Conflict) as refusal:
        moved(engine, row, TemplateStatus.ACTIVE)

    assert ("INVALID_STATUS", {"current_status": "active"}) == (refusal.value.code, refusal.value.evidence)


def test_claims_of_before_a_stop_are_outdated_by_its_epoch(engine: Engine) -> None:
    """Pause, offline and archive begin the next epoch; publish and resume do not."""
    row = made(engine, 1)

    epochs = []
    for status in ("active", "paused", "active", "offline", "archived"):
        row = moved(engine, row, TemplateStatus(status))
        epochs.append(row["pause_epoch"])

    assert [0, 1, 1, 2, 3] == epochs


def test_pages_are_newest_first_and_meet_without_gap_or_overlap(engine: Engine) -> None:
    """Each page goes on below the last identity of the one before."""
    for template_id in range(1, 8):
        made(engine, template_id)

    pages, before = [], None
    while page := read_ids(engine, limit=3, before=before):
        pages.append(page)
        before = page[-1]

    assert [[7, 6, 5], [4, 3, 2], [1]] == pages


@pytest.mark.parametrize(
    ("now", "status", "expected"),
    [
        (START - timedelta(seconds=1), "scheduled", [4, 3, 2]),
        (START, "scheduled", []),
        (START, "active", [4, 3, 2]),
        (START + timedelta(days=1), "active", []),
        (START + timedelta(days=1), "ended", [4, 3, 2]),
        (START, "paused", [5]),
        (START + timedelta(days=1), "paused", [5]),
        (START, "draft", [1]),
        (START, "archived", []),
    ],
)
def test_a_status_is_asked_for_as_it_is_at_that_moment(
    engine: Engine, now: datetime, status: str, expected: list[int]
) -> None:
    """Whichever word of the three that follow the clock is stored."""
    made(engine, 1)
    for template_id, stored in enumerate(("scheduled", "active", "ended", "paused"), start=2):
        moved(engine, made(engine, template_id), TemplateStatus(stored))

    assert expected == read_ids(engine, status=TemplateStatus(status), now=now)


def read_ids(
    engine: Engine,
    *,
    limit: int = 50,
    before: int | None = None,
    status: TemplateStatus | None = None,
    now: datetime = START,
) -> list[int]:
    """The identities on a page."""
    with transaction(engine) as connection:
        rows = store.read_page(connection, limit=limit, before=before, status=status, now=now)
    return [row["template_id"] for row in rows]
