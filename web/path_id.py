"""Identities in paths: decimal text of a positive integer below 2**63, or the thing does not exist."""

from __future__ import annotations

from werkzeug.routing import PathConverter

from coupon_workers.errors import NotFound

_LONGEST = len(str(2**63 - 1))


def path_id(text: str, code: str) -> int:
    """The integer ``text`` spells, exactly as we would spell it.

    Raises ``NotFound`` with ``code``, in the words of it, for anything else: no such text was ever given out.
    """
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST and text[0] != "0":
        number = int(text)
        if number < 2**63:
            return number
    thing = code.removesuffix("_NOT_FOUND").lower().replace("_", " ")
    raise NotFound(code, f"there is no such {thing}")


class UserIdConverter(PathConverter):
    """``<user:user_id>`` in an address: a user's id may hold slashes anywhere, and however a client escapes them they
    arrive here as slashes (WSGI)."""

    regex = r"[\s\S]+?"
    part_isolating = False
