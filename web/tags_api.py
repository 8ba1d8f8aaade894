"""Users' tags over HTTP, for audiences by expression (API.md, Campaign batches)."""

from __future__ import annotations

from typing import Annotated, Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.campaigns.tag_expression import TAG_LENGTH
from coupon_workers.campaigns.tag_import import MOST_TAGS, put_tags, read_tags
from web.auth import require
from web.context import services
from web.idempotent import idempotent

api = APIBlueprint("tags", __name__, abp_tags=[Tag(name="Campaign batches")])

ADDRESS = "/v1/users/<user:user_id>/tags"


class TagsBody(BaseModel):
    """All of a user's tags."""

    model_config = ConfigDict(extra="forbid")

    tags: Annotated[
        list[Annotated[str, Field(strict=True, min_length=1, max_length=TAG_LENGTH)]], Field(max_length=MOST_TAGS)
    ] = Field(examples=[["vip", "new"]])


class TagsAnswer(BaseModel):
    """A user's tags, sorted."""

    user_id: str
    tags: list[str]


class UserPath(BaseModel):
    """The user in the path."""

    user_id: str


@api.put(ADDRESS, summary="Set a user's tags", responses={200: TagsAnswer})
@require("admin")
@idempotent
def put_user_tags(path: UserPath, body: TagsBody) -> Any:
    """These, and no other. Many users at once: `coupon-workers batch tags FILE`."""
    return {"user_id": path.user_id, "tags": put_tags(services(), path.user_id, body.tags)}


@api.get(ADDRESS, summary="A user's tags", responses={200: TagsAnswer})
@require("admin")
def get_user_tags(path: UserPath) -> Any:
    """Of a user who is not known, none."""
    return {"user_id": path.user_id, "tags": read_tags(services(), path.user_id)}
