"""A batch as it is asked for over HTTP: the fields of a form, or of JSON (API.md, Campaign batches)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError

from coupon_workers.campaigns.batch import BatchPolicy
from coupon_workers.campaigns.tag_expression import MAX_LENGTH
from coupon_workers.errors import InvalidInput
from coupon_workers.field_message import REQUIRED, field_message
from coupon_workers.templates.field_type import MAX_EXACT, Instant, Name
from web.json_body import JSON_TYPE
from web.upload import FORM_TYPE
from web.upload_form import FILE_FIELD, Upload

_FORM_TAGS = "are for a JSON body: a batch has a file or an expression over tags, not both"


def _identity(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 19:
        number = int(value)
        if 0 < number < 2**63:
            return number
    elif type(value) is int and 0 < value <= MAX_EXACT:
        return value
    raise PydanticCustomError("identity", "must be an identity: digits in a string, or an integer below 2^53")


Identity = Annotated[
    int, BeforeValidator(_identity), WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]{0,18}$"})
]


class BatchFields(BaseModel):
    """What every batch has."""

    model_config = ConfigDict(extra="forbid")

    template_id: Identity = Field(examples=["653247040368672768"])
    name: Name = Field(examples=["Double Eleven, regulars"])
    policy: Literal["all_or_nothing", "best_effort"] = Field(
        "all_or_nothing", description="without enough stock: no coupon at all, or as many as there are"
    )
    start_at: Instant | None = Field(None, description="absent: as soon as it is staged")

    @property
    def batch_policy(self) -> BatchPolicy:
        """The policy."""
        return BatchPolicy(self.policy)


class TaggedBatch(BatchFields):
    """A batch for the users that an expression over tags means."""

    tags: Annotated[str, Field(strict=True, min_length=1, max_length=MAX_LENGTH)] = Field(
        examples=["vip and not churned"]
    )


def read_form_fields(form: Upload) -> BatchFields:
    """The fields of a form, whose file is there then.

    Raises ``InvalidInput`` naming every field that breaks a rule, of the form's own and of a batch's.
    """
    fields, errors = dict(form.fields), list(form.errors)
    if fields.pop("tags", None) is not None:
        errors.append(("tags", _FORM_TAGS))
    if form.file is None and not any(name == FILE_FIELD for name, _ in errors):
        errors.append((FILE_FIELD, REQUIRED))
    known = {name for name, _ in errors}
    try:
        read = BatchFields.model_validate(fields)
    except ValidationError as error:
        found = [(".".join(map(str, part["loc"])), field_message(part)) for part in error.errors(include_url=False)]
        raise InvalidInput(errors + [(name, message) for name, message in found if name not in known]) from None
    if errors:
        raise InvalidInput(errors)
    return read


def described() -> dict[str, Any]:
    """The body, for the published description: the view reads it by hand."""
    tagged, form = TaggedBatch.model_json_schema(), BatchFields.model_json_schema()
    form["properties"][FILE_FIELD] = {
        "type": "string",
        "contentMediaType": "application/octet-stream",
        "description": "CSV with a column user_id, JSONL or Parquet, at most 64 MiB",
    }
    form["required"] = [*form["required"], FILE_FIELD]
    content = {JSON_TYPE: {"schema": tagged}, FORM_TYPE: {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}
