"""What is wrong with a field, in the same words whoever found it: Pydantic or a check by hand (API.md, Errors)."""

from __future__ import annotations

import re

from pydantic_core import ErrorDetails

REQUIRED = "is required"
UNKNOWN = "unknown field"
NOT_AN_OBJECT = "must be a JSON object"

_OF_TYPE = {
    "missing": REQUIRED,
    "extra_forbidden": UNKNOWN,
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": NOT_AN_OBJECT,
    "mapping_type": NOT_AN_OBJECT,
    "model_type": NOT_AN_OBJECT,
    "model_attributes_type": NOT_AN_OBJECT,
}

_SHOULD = re.compile(r"^\w+ should ")


def field_message(found: ErrorDetails) -> str:
    """Pydantic's error in our words. It goes on where the field's name ends: "must have at most 64 characters"."""
    return _OF_TYPE.get(found["type"]) or _SHOULD.sub("must ", found["msg"])
