"""API keys over HTTP (API.md, Back office): made, listed, revoked. A key is shown once, when it is made."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.access.api_key import (
    LONGEST_NAME,
    KeyRecord,
    create_key,
    key_id_from,
    list_keys,
    read_key,
    revoke_key,
)
from coupon_workers.access.principal import Scope
from coupon_workers.errors import Conflict
from coupon_workers.templates.field_type import Flag
from web.auth import require
from web.context import services, web_of_app
from web.idempotent import idempotent, idempotent_but, subject_id
from web.page import PageQuery, cursor_instant, page, read_cursor
from web.problem_code import refuses

api = APIBlueprint("keys", __name__, abp_tags=[Tag(name="API keys", description="Who may call, with which scope")])


class KeyBody(BaseModel):
    """A key to make."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)] = Field(examples=["storefront of the app"])
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))]
    signed: Flag = Field(False, description="its requests must be signed")


class KeyAnswer(BaseModel):
    """A key, without the key."""

    key_id: str
    name: str
    scopes: list[str]
    signed: bool
    created_at: str
    revoked_at: str | None


class NewKeyAnswer(KeyAnswer):
    """A key just made. ``key`` is shown in this answer only; a repetition of the request has null."""

    key: str | None


class KeyPage(BaseModel):
    """Keys, newest first."""

    items: list[KeyAnswer]
    next_cursor: str | None


class KeyPath(BaseModel):
    """The key in the path."""

    key_id: str


@api.post("/v1/api-keys", summary="Make an API key", responses={201: NewKeyAnswer})
@require("admin")
@idempotent_but("key")
def post_key(body: KeyBody) -> Any:
    """The key is shown once. Under an `Idempotency-Key` a repetition tells of the same key and has `"key": null`: the
    key itself is kept nowhere. Revoke it and make another if it was lost."""
    engine, key_id = services().engine, key_id_from(subject_id())
    try:
        made = create_key(engine, name=body.name, scopes=body.scopes, signed=body.signed, key_id=key_id)
    except Conflict:  # by this request, whose process died before its answer was kept
        return {"key": None, **read_key(engine, key_id).shown()}, 201
    return {"key": made.key, **made.record.shown()}, 201


@api.get("/v1/api-keys", summary="List API keys", responses={200: KeyPage})
@require("admin")
def get_keys(query: PageQuery) -> Any:
    """Newest first, the revoked ones too."""
    before = _position(query.cursor)
    keys = list_keys(services().engine, limit=query.limit + 1, before=before)
    return page(keys, query.limit, KeyRecord.shown, lambda key: [key.created_at.isoformat(), key.key_id])


@api.delete("/v1/api-keys/<key_id>", summary="Revoke an API key", responses={200: KeyAnswer})
@require("admin")
@refuses("API_KEY_NOT_FOUND")
@idempotent
def delete_key(path: KeyPath) -> Any:
    """It opens nothing any more: here at once, in other processes within five seconds. Revoking it again changes
    nothing."""
    record = revoke_key(services().engine, path.key_id)
    web_of_app().keys.forget(record.key_id)
    return record.shown()


def _position(cursor: str | None) -> tuple[datetime, str] | None:
    position = read_cursor(cursor, str, str)
    return None if position is None else (cursor_instant(position[0]), position[1])
