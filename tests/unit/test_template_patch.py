"""Changing a template: what may change when, and what sending back an answer does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_patch import TemplatePatch, patched
from coupon_workers.templates.template_row import columns_of

START = datetime(2026, 11, 11, tzinfo=UTC)
DURING = START + timedelta(hours=1)
BODY: dict[str, Any] = {
    "template_no": "TPL-1",
    "name": "Double Eleven",
    "type": "amount_off",
    "currency": "CNY",
    "amount": 2000,
    "total_quantity": 1000,
    "claim_start": "2026-11-11T00:00:00Z",
    "claim_end": "2026-11-12T00:00:00Z",
    "validity": {"mode": "fixed", "from": "2026-11-11T00:00:00Z", "to": "2026-12-01T00:00:00Z"},
}


def row(status: str = "draft", **fields: Any) -> dict[str, Any]:
    """A row as it is stored."""
    return columns_of(TemplateBody.model_validate(BODY | fields)) | {
        "template_id": 2**60,
        "status": status,
        "archived_quantity": 0,
    }


def answer(**changes: Any) -> dict[str, Any]:
    """The answer of a GET, with changes."""
    fields = TemplateBody.model_validate(BODY).model_dump(mode="json", by_alias=True)
    said = {
        "template_id": str(2**60),
        "status": "active",
        "stock": {"total": 1000, "issued": 3},
        "version": 7,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-02T00:00:00Z",
    }
    return fields | said | changes


def errors(stored: dict[str, Any], changes: dict[str, Any]) -> list[str]:
    """The fields that a change is refused for."""
    with pytest.raises(InvalidInput) as refusal:
        patched(stored, changes, DURING)
    return sorted({field for field, _ in refusal.value.errors})


def test_a_draft_changes_in_every_field() -> None:
    """Also in its type, when the fields of the types change with it."""
    new, changed = patched(row(), {"type": "percent_off", "amount": None, "percent_off": 1500}, DURING)

    assert ["type", "amount", "percent_off"] == changed
    assert ("percent_off", None, 1500) == (new.type, new.amount, new.percent_off)


def test_an_object_takes_the_place_of_the_stored_one() -> None:
    """What it leaves out is the default, not what was stored."""
    stored = row(stacking={"exclusive": True, "priority": 5})

    new, _ = patched(stored, {"stacking": {"group": "g"}}, DURING)

    assert {"exclusive": False, "group": "g", "priority": 100} == new.stacking.model_dump()


def test_a_change_is_validated_with_what_is_stored() -> None:
    """Errors of fields and of rules with stored fields come in one answer."""
    fields = errors(row(), {"claim_start": "2027-01-01T00:00:00Z", "name": 7, "colour": "red", "template_id": "9"})

    assert ["claim_end", "colour", "name", "template_id", "validity.to"] == fields


@pytest.mark.parametrize("status", ["pending_approval", "scheduled", "active", "paused", "ended", "offline"])
def test_a_published_template_changes_in_four_fields(status: str) -> None:
    """Name, total, end of claiming, and whether users are told."""
    changes = {"name": "N", "total_quantity": 2, "claim_end": "2026-11-13T00:00:00Z", "notify": False}

    _, changed = patched(row(status), changes, DURING)

    assert sorted(changes) == sorted(changed)


def test_other_fields_of_a_published_template_are_named_in_the_refusal() -> None:
    """All of them, and only those."""
    with pytest.raises(Conflict) as refusal:
        patched(row("active"), {"amount": 1, "per_user_limit": 2, "name": "N", "currency": "CNY"}, DURING)

    assert ("NOT_PATCHABLE", {"fields": ["amount", "per_user_limit"], "current_status": "active"}) == (
        refusal.value.code,
        refusal.value.evidence,
    )


def test_an_archived_template_does_not_change() -> None:
    """Not even in its name."""
    with pytest.raises(Conflict) as refusal:
        patched(row("archived"), {"name": "N"}, DURING)

    assert "INVALID_STATUS" == refusal.value.code


@pytest.mark.parametrize("status", ["active", "paused", "offline"])
def test_sending_back_an_answer_changes_nothing(status: str) -> None:
    """What moves by itself (stock, version, instants of change) is not looked at."""
    _, changed = patched(row(status), answer(status=status, version=1, stock=None), DURING)

    assert [] == changed


@pytest.mark.parametrize("seen", ["scheduled", "active", "ended"])
def test_a_status_that_the_clock_has_left_may_be_sent_back(seen: str) -> None:
    """A form that was opened before the start is saved after it."""
    _, changed = patched(row("scheduled"), answer(status=seen, name="N"), DURING)

    assert ["name"] == changed


@pytest.mark.parametrize("status", ["paused", "draft", "nonsense", None, ["active"]])
def test_a_status_is_not_changed_by_a_patch(status: Any) -> None:
    """It has actions of its own."""
    assert ["status"] == errors(row("active"), {"status": status})


def test_no_number_in_a_patch_keeps_the_number() -> None:
    """It has been made, once."""
    new, changed = patched(row(), {"template_no": None}, DURING)

    assert ("TPL-1", []) == (new.template_no, changed)


def test_the_description_of_a_patch_names_every_field_and_requires_none() -> None:
    """Those of the answer, as that may be sent back."""
    schema = TemplatePatch.model_json_schema(mode="validation")

    assert set(answer()) == set(schema["properties"])
    assert "required" not in schema


def test_the_end_of_claiming_stands_once_coupons_are_archived() -> None:
    """Limits are counted by coupons; the name may change still."""
    stored = row("ended") | {"archived_quantity": 3}

    with pytest.raises(Conflict) as refusal:
        patched(stored, {"claim_end": "2029-01-01T00:00:00Z"}, DURING)

    assert ("HAS_ARCHIVED", {"archived": 3}) == (refusal.value.code, refusal.value.evidence)
    assert ["name"] == patched(stored, {"name": "Singles' Day"}, DURING)[1]
