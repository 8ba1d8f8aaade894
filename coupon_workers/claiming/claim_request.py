"""A claim as it comes in: read and checked by hand, because this is the hottest input of all (DESIGN 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from coupon_workers.errors import InvalidInput
from coupon_workers.field_message import NOT_AN_OBJECT, REQUIRED, UNKNOWN
from coupon_workers.runtime.network import counted_ip

MAX_ID = 2**63 - 1
MAX_EXACT = 2**53
"""Numbers in JSON are exact below this; larger ones must come as strings (API.md, Conventions)."""

USER_ID_LENGTH = 64
REQUEST_ID_LENGTH = 128
TEXT_LENGTH = 128
OPTIONAL = ("channel", "device_id", "ip", "address_hash")
FIELDS = frozenset(("template_id", "user_id", "request_id", *OPTIONAL))


class ClaimRequest(NamedTuple):
    """One claim. ``channel`` and what follows are "" when none was named; ``ip`` of IPv6 is the network's."""

    template_id: int
    user_id: str
    request_id: str
    channel: str = ""
    device_id: str = ""
    ip: str = ""
    address_hash: str = ""


def read_claim(body: Any) -> ClaimRequest:
    """Check a JSON object and take the claim out of it.

    Raises ``InvalidInput`` naming every bad field of it.
    """
    try:
        template_id, user_id, request_id = body["template_id"], body["user_id"], body["request_id"]
        channel = body.get("channel", "")
        # The common claim: three or four fine texts. Anything else is looked at closely below.
        if (
            len(body) == 3 + ("channel" in body)
            and type(template_id) is str
            and template_id.isdecimal()
            and template_id.isascii()
            and template_id[0] != "0"
            and len(template_id) < 19
            and type(user_id) is str
            and 0 < len(user_id) <= USER_ID_LENGTH
            and user_id.isprintable()
            and user_id.isascii()
            and " " not in user_id
            and type(request_id) is str
            and 0 < len(request_id) <= REQUEST_ID_LENGTH
            and request_id.isprintable()
            and request_id.isascii()
            and (channel.isalnum() or "channel" not in body)
            and type(channel) is str
            and len(channel) <= TEXT_LENGTH
        ):
            return ClaimRequest(int(template_id), user_id, request_id, channel)
    except (TypeError, KeyError, AttributeError):
        pass
    return _read_closely(body)


def _read_closely(body: Any) -> ClaimRequest:
    if not isinstance(body, Mapping):
        raise InvalidInput([("", NOT_AN_OBJECT)])
    errors = [(str(field), UNKNOWN) for field in body if field not in FIELDS]
    template_id = _identity(body, "template_id", errors)
    user_id = _user(body, errors)
    request_id = _text(body, "request_id", REQUEST_ID_LENGTH, errors) if "request_id" in body else ""
    errors += [(name, REQUIRED) for name in ("template_id", "user_id", "request_id") if name not in body]
    channel, device_id, ip, address_hash = (
        "" if body.get(name) is None else _text(body, name, TEXT_LENGTH, errors) for name in OPTIONAL
    )
    if errors:
        raise InvalidInput(errors)
    return ClaimRequest(template_id, user_id, request_id, channel, device_id, counted_ip(ip), address_hash)


def _identity(body: Mapping[str, Any], name: str, errors: list[tuple[str, str]]) -> int:
    value = body.get(name)
    if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) <= 19:
        number = int(value)
        if 0 < number <= MAX_ID:
            return number
    elif type(value) is int and 0 < value < MAX_EXACT:
        return value
    if name in body:
        errors.append((name, "must be an identity: digits in a string, or an integer below 2^53"))
    return 0


def _user(body: Mapping[str, Any], errors: list[tuple[str, str]]) -> str:
    value = body.get("user_id")
    if type(value) is int and abs(value) < MAX_EXACT:
        return str(value)
    if "user_id" not in body:
        return ""
    problem = user_id_problem(value)
    if problem:
        errors.append(("user_id", problem))
        return ""
    return str(value)


def user_id_problem(value: object) -> str | None:
    """What is wrong with a user id, or None: 1-64 visible characters without spaces (API.md, Conventions)."""
    if isinstance(value, str) and 0 < len(value) <= USER_ID_LENGTH and value.isprintable() and " " not in value:
        return None
    return f"must be 1 to {USER_ID_LENGTH} visible characters without spaces"


def _text(body: Mapping[str, Any], name: str, length: int, errors: list[tuple[str, str]]) -> str:
    value = body.get(name)
    # isprintable() is false for control characters, NUL and lone surrogates.
    if isinstance(value, str) and 0 < len(value) <= length and value.isprintable():
        return value
    errors.append((name, f"must be 1 to {length} printable characters"))
    return ""
