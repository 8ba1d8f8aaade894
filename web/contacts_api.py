"""Where users are reached, over HTTP: an address for each channel that needs one."""

from __future__ import annotations

from typing import Annotated, Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field

from coupon_workers.claiming.claim_request import user_id_problem
from coupon_workers.errors import InvalidInput
from coupon_workers.notify.contact import Contact, delete_contact, put_contact, read_contact
from coupon_workers.runtime.clock import rfc3339
from web.auth import require
from web.context import services
from web.idempotent import idempotent
from web.problem_code import refuses

api = APIBlueprint("contacts", __name__, abp_tags=[Tag(name="Contacts", description="Where users are reached")])

ADDRESS = "/v1/users/<user:user_id>/contacts/<channel>"

LONGEST_ADDRESS = 254


class ContactBody(BaseModel):
    """An address."""

    model_config = ConfigDict(extra="forbid")

    address: Annotated[str, Field(min_length=1, max_length=LONGEST_ADDRESS)] = Field(examples=["ann@example.com"])


class ContactAnswer(BaseModel):
    """A user's address for a channel."""

    user_id: str
    channel: str
    address: str
    updated_at: str


class ContactPath(BaseModel):
    """The user in the path, and the channel: `smtp` or `sms`."""

    user_id: str
    channel: str


@api.put(ADDRESS, summary="Set a user's address", responses={200: ContactAnswer})
@require("storefront")
@refuses("CHANNEL_NOT_FOUND")
@idempotent
def put_user_contact(path: ContactPath, body: ContactBody) -> Any:
    """A mail address for `smtp`, a telephone number as `+8613800138000` for `sms`."""
    return _show(put_contact(services(), _user(path.user_id), path.channel, body.address))


@api.get(ADDRESS, summary="A user's address", responses={200: ContactAnswer})
@require("storefront")
@refuses("CHANNEL_NOT_FOUND", "CONTACT_NOT_FOUND")
def get_user_contact(path: ContactPath) -> Any:
    """404 when the user has none for this channel."""
    return _show(read_contact(services(), _user(path.user_id), path.channel))


@api.delete(ADDRESS, summary="Forget a user's address", responses={200: ContactAnswer})
@require("storefront")
@refuses("CHANNEL_NOT_FOUND", "CONTACT_NOT_FOUND")
@idempotent
def delete_user_contact(path: ContactPath) -> Any:
    """The answer shows what was forgotten. Messages on their way are discarded then."""
    return _show(delete_contact(services(), _user(path.user_id), path.channel))


def _user(user_id: str) -> str:
    problem = user_id_problem(user_id)
    if problem:
        raise InvalidInput([("user_id", problem)])
    return user_id


def _show(contact: Contact) -> dict[str, Any]:
    return {
        "user_id": contact.user_id,
        "channel": contact.channel,
        "address": contact.address,
        "updated_at": rfc3339(contact.updated_at),
    }
