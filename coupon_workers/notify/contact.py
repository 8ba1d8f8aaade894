"""Where users are reached: an address for each channel that needs one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import MAIL_ADDRESS

_NUMBER = re.compile(r"\+[1-9][0-9]{6,14}")

_RULES = {
    "smtp": (MAIL_ADDRESS, "must be a mail address, without a name, in ASCII"),
    "sms": (_NUMBER, "must be a telephone number as +8613800138000"),
}


@dataclass(frozen=True, slots=True)
class Contact:
    """A user's address for a channel."""

    user_id: str
    channel: str
    address: str
    updated_at: datetime


def needs_contact(channel: str) -> bool:
    """Whether a channel sends to an address of the user."""
    return channel in _RULES


def put_contact(services: Services, user_id: str, channel: str, address: str) -> Contact:
    """Set the address; the one before is forgotten.

    Raises ``NotFound`` ``CHANNEL_NOT_FOUND``, ``InvalidInput`` for an address the channel cannot use,
    ``StoreUnavailable``.
    """
    pattern, message = _rule(channel)
    if not pattern.fullmatch(address):
        raise InvalidInput([("address", message)])
    contact = Contact(user_id, channel, address, services.clock())
    with transaction(services.engine) as connection:
        connection.execute(
            text(
                "INSERT INTO user_contact (user_id, channel, address, updated_at)"
                " VALUES (:user_id, :channel, :address, :updated_at)"
                " ON CONFLICT ON CONSTRAINT pk_user_contact"
                " DO UPDATE SET address = excluded.address, updated_at = excluded.updated_at"
            ),
            {"user_id": user_id, "channel": channel, "address": address, "updated_at": contact.updated_at},
        )
    return contact


def read_contact(services: Services, user_id: str, channel: str) -> Contact:
    """The address. Raises ``NotFound`` ``CHANNEL_NOT_FOUND`` or ``CONTACT_NOT_FOUND``, ``StoreUnavailable``."""
    return _one(
        services, "SELECT {} FROM user_contact WHERE user_id = :user_id AND channel = :channel", user_id, channel
    )


def delete_contact(services: Services, user_id: str, channel: str) -> Contact:
    """Forget the address; what was forgotten. Raises as ``read_contact``."""
    statement = "DELETE FROM user_contact WHERE user_id = :user_id AND channel = :channel RETURNING {}"
    return _one(services, statement, user_id, channel)


def _one(services: Services, statement: str, user_id: str, channel: str) -> Contact:
    _rule(channel)
    query = text(statement.format("user_id, channel, address, updated_at"))
    with transaction(services.engine) as connection:
        row = connection.execute(query, {"user_id": user_id, "channel": channel}).one_or_none()
    if row is None:
        raise NotFound("CONTACT_NOT_FOUND", f"this user has no address for {channel}")
    return Contact(row.user_id, row.channel, row.address, row.updated_at)


def _rule(channel: str) -> tuple[re.Pattern[str], str]:
    try:
        return _RULES[channel]
    except KeyError:
        raise NotFound("CHANNEL_NOT_FOUND", f"addresses are kept for {' and '.join(_RULES)}") from None
