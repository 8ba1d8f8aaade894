"""Validating a body as a whole: every error at once, of fields and of rules between them (API.md, Errors).

Pydantic asks a model's own validators only when every field is well formed. Here the rules are asked of whatever is
well formed, so that one answer names all there is to repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ModelWrapValidatorHandler, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from coupon_workers.field_message import field_message

Body = TypeVar("Body", bound=BaseModel)
Path = tuple[int | str, ...]
"""The way to a field from the body's top: names, and numbers in lists."""
Error = tuple[Path, str]
Rules = Callable[[dict[str, Any]], Iterable[tuple[str, str]]]
"""Given the well-formed values by dotted names, the fields (dotted) that break a rule, and how."""

_NAME_SHOWN = 100
"""Characters of an unknown field's name that an error repeats."""


def every_error_at_once(
    model: type[Body], data: Any, handler: ModelWrapValidatorHandler[Body], broken_rules: Rules
) -> Body:
    """The work of a model's ``wrap`` validator. Raises ``ValidationError`` with every error, each at its field."""
    errors: list[Error] = []
    known: dict[str, Any] = {}
    if isinstance(data, Mapping):
        errors += [((name,), "This name is not a Unicode text") for name in data if not _is_unicode(name)]
        data = {name: value for name, value in data.items() if _is_unicode(name)}
    try:
        body = handler(data)
        known = flatten(body)
    except ValidationError as error:
        errors += [_plain(model, found) for found in error.errors(include_url=False, include_input=False)]
        if isinstance(data, Mapping):
            known = well_formed(model, data)
    errors += [(tuple(field.split(".")), message) for field, message in broken_rules(known)]
    if errors:
        raise ValidationError.from_exception_data(model.__name__, [_detail(*error) for error in errors])
    return body


def errors_of(error: ValidationError) -> list[tuple[str, str]]:
    """The errors of a ``ValidationError`` as ``InvalidInput`` takes them: dotted names and messages."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [(".".join(map(str, each["loc"])), field_message(each)) for each in found]


def _is_unicode(name: object) -> bool:
    if not isinstance(name, str):
        return False
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _detail(path: Path, message: str) -> InitErrorDetails:
    shown = tuple(part if isinstance(part, int) else _shown(part) for part in path)
    # No input: it may be long, or unfit to print.
    return InitErrorDetails(
        type=PydanticCustomError("invalid", "{message}", {"message": message}), loc=shown, input=None
    )


def _shown(name: str) -> str:
    return name[:_NAME_SHOWN].encode("utf-8", "backslashreplace").decode()


def _plain(model: type[BaseModel], found: ErrorDetails) -> Error:
    """Pydantic's error at the place the client knows: without the name of the union's member, which is no field."""
    path, message = found["loc"], field_message(found)
    field = _field_of(model, path[0]) if path else None
    if field is None or not isinstance(field.discriminator, str):
        return path, message
    if found["type"] in ("union_tag_not_found", "union_tag_invalid"):
        words = ", ".join(tag for member in _members(field.annotation) for tag in _tags(member, field.discriminator))
        return (*path, field.discriminator), f"must be one of {words}"
    return path[:1] + path[2:], message


def _field_of(model: type[BaseModel], name: object) -> FieldInfo | None:
    return next((field for key, field in model.model_fields.items() if (field.alias or key) == name), None)


def _members(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models among the alternatives of an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _members(part)


def _tags(member: type[BaseModel], discriminator: str) -> tuple[str, ...]:
    return get_args(member.model_fields[discriminator].annotation)


def flatten(body: BaseModel, prefix: str = "") -> dict[str, Any]:
    """Every value of ``body`` by its dotted name, those of models inside it too."""
    known = {}
    for key, field in type(body).model_fields.items():
        name, value = prefix + (field.alias or key), getattr(body, key)
        known[name] = value
        if isinstance(value, BaseModel):
            known |= flatten(value, f"{name}.")
    return known


def well_formed(model: type[BaseModel], data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """What of ``data`` can be read as fields of ``model``, by dotted names; defaults stand in for what is left out."""
    known: dict[str, Any] = {}
    for key, field in model.model_fields.items():
        name = field.alias or key
        if name not in data:
            if not field.is_required():
                known |= _with_parts(prefix + name, field.get_default(call_default_factory=True))
            continue
        try:
            alone = _alone(model, key).model_validate({name: data[name]})
            known |= _with_parts(prefix + name, getattr(alone, key))
        except ValidationError:
            member = _member_for(field, data[name])
            if member is not None:
                known |= well_formed(member, data[name], f"{prefix}{name}.")
    return known


def _with_parts(name: str, value: Any) -> dict[str, Any]:
    return {name: value} | (flatten(value, f"{name}.") if isinstance(value, BaseModel) else {})


@cache
def _alone(model: type[BaseModel], key: str) -> type[BaseModel]:
    """A model of this one field."""
    field = model.model_fields[key]
    fields: dict[str, Any] = {key: (field.annotation, field)}
    return create_model(f"{model.__name__}.{key}", __config__=model.model_config, **fields)


def _member_for(field: FieldInfo, value: Any) -> type[BaseModel] | None:
    """The model by which the parts of ``value`` can be read one by one, though as a whole it cannot."""
    if not isinstance(value, Mapping):
        return None
    members = list(_members(field.annotation))
    if isinstance(field.discriminator, str):
        tag = value.get(field.discriminator)
        members = [member for member in members if tag in _tags(member, field.discriminator)]
    return members[0] if len(members) == 1 else None
