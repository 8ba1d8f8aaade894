"""Pydantic's errors in the words of the checks by hand."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coupon_workers.field_message import field_message


class Body(BaseModel):
    """A field of each kind."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field("x", min_length=1)
    count: int = Field(1, ge=1)
    flag: bool = True
    words: list[str] = []
    kind: Literal["a", "b"] = "a"
    inner: dict[str, int] = {}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", 7, "must be a string"),
        ("name", "", "must have at least 1 character"),
        ("count", "1", "must be an integer"),
        ("count", 0, "must be greater than or equal to 1"),
        ("flag", 1, "must be true or false"),
        ("words", "x", "must be a list"),
        ("kind", "c", "must be 'a' or 'b'"),
        ("inner", [], "must be a JSON object"),
        ("colour", "red", "unknown field"),
    ],
)
def test_a_message_goes_on_where_the_fields_name_ends(field: str, value: Any, message: str) -> None:
    """What it must be, not what an input should have been."""
    with pytest.raises(ValidationError) as refusal:
        Body.model_validate({field: value})

    assert [message] == [field_message(found) for found in refusal.value.errors()]
