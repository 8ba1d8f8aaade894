"""Changing a template: the body of ``PATCH /v1/templates/{template_id}`` (API.md, Templates).

A field that is given takes the place of the stored one as a whole, objects too; the result is validated as a whole
template. Fields that are given as they are change nothing and are welcome in any status, so that the answer of a GET
may be sent back. Of what only the service says:

- ``stock``, ``version``, ``created_at`` and ``updated_at`` are ignored: they move by themselves between GET and PATCH.
- ``template_id`` must be this template's.
- ``status`` must be the present one, give or take what the clock did since (scheduled, active, ended): a status is
  changed by its own action, and whoever tries it here is told so.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import GetJsonSchemaHandler, RootModel, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.templates.archived import has_archived
from coupon_workers.templates.field_type import STORED
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_answer import TemplateAnswer
from coupon_workers.templates.template_row import FIELDS, Row, fields_of, stored_fields
from coupon_workers.templates.template_status import CLOCKED, TemplateStatus, effective_status
from coupon_workers.templates.whole_body import errors_of

PATCHABLE_ONCE_PUBLISHED = frozenset({"name", "total_quantity", "claim_end", "notify"})

PATCHABLE_OF_A_POOL = PATCHABLE_ONCE_PUBLISHED - {"total_quantity"}
"""A budget is shared out among so many coupons when the template is published, and not again."""

_MOVE_BY_THEMSELVES = frozenset({"stock", "version", "created_at", "updated_at"})
_CHECKED = frozenset({"template_id", "status"})


class TemplatePatch(RootModel[dict[Any, Any]]):
    """Changes by field. They are validated with the template they change, not before: see ``patched``."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        whole = handler.resolve_ref_schema(handler(TemplateAnswer.__pydantic_core_schema__))
        fields = {
            name: {word: value for word, value in field.items() if word != "default"}
            for name, field in whole["properties"].items()
        }
        return {
            "title": cls.__name__,
            "description": "Some of a template's fields; what only the service says is ignored or must be as it is.",
            "type": "object",
            "properties": fields,
            "additionalProperties": False,
            "example": {"name": "20 off from 100, extended", "total_quantity": 1200},
        }


def patched(row: Row, changes: Mapping[str, Any], now: datetime) -> tuple[TemplateBody, list[str]]:
    """The template after ``changes``, and the fields that differ from the stored ones.

    Raises ``InvalidInput`` with every error at once; ``Conflict`` ``INVALID_STATUS`` for an archived template and
    ``NOT_PATCHABLE``, with the ``fields``, for what cannot be changed once a template has left draft, and
    ``HAS_ARCHIVED`` for the end of claiming once coupons are archived.
    """
    status = effective_status(row, now)
    if status is TemplateStatus.ARCHIVED:
        raise Conflict("INVALID_STATUS", "an archived template does not change", current_status=status.value)
    stored = stored_fields(row)
    new = _merged(row, changes, status)
    changed = [field for field in FIELDS if getattr(new, field) != getattr(stored, field)]
    patchable = PATCHABLE_OF_A_POOL if stored.type == "random_amount" else PATCHABLE_ONCE_PUBLISHED
    refused = [field for field in changed if field not in patchable]
    if refused and status is not TemplateStatus.DRAFT:
        raise Conflict(
            "NOT_PATCHABLE",
            f"a template that is {status} keeps its {', '.join(refused)}",
            fields=refused,
            current_status=status.value,
        )
    if "claim_end" in changed and row["archived_quantity"]:
        raise has_archived(row["archived_quantity"])
    return new, changed


def _merged(row: Row, changes: Mapping[str, Any], status: TemplateStatus) -> TemplateBody:
    errors = _errors_of_checked(row, changes, status)
    given = {name: value for name, value in changes.items() if name not in _MOVE_BY_THEMSELVES | _CHECKED}
    if given.get("template_no", "") is None:
        del given["template_no"]  # "made when left out": it has been made
    try:
        kept = given.get("timezone", row["timezone"]) == row["timezone"]
        new = TemplateBody.model_validate(fields_of(row) | given, context=STORED if kept else None)
    except ValidationError as error:
        raise InvalidInput(errors + errors_of(error)) from None
    if errors:
        raise InvalidInput(errors)
    return new


def _errors_of_checked(row: Row, changes: Mapping[str, Any], status: TemplateStatus) -> list[tuple[str, str]]:
    errors = []
    if str(changes.get("template_id", row["template_id"])) != str(row["template_id"]):
        errors.append(("template_id", "It is the identity of another template"))
    given = changes.get("status", status)
    if given != status and not (isinstance(given, str) and {given, status} <= CLOCKED):
        errors.append(("status", f"It is {status}; a status is changed by its action, such as /pause"))
    return errors
