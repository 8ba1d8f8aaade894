"""JSON bodies, read strictly: what two readers could read differently is refused (API.md, Conventions)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import get_ident
from time import monotonic
from typing import IO, Any, NoReturn

from flask import Request

from coupon_workers.field_message import NOT_AN_OBJECT
from web.problem import ProblemError
from web.stalled_body import waiting_since_s

JSON_TYPE = "application/json"

MOST_BODY = 1024 * 1024
"""Bytes of a body that is no file (API.md, Conventions: 1 MiB)."""

CHUNK_BYTES = 64 * 1024
"""What is read at once of a body that goes to a file."""


class StrictRequest(Request):
    """A request whose JSON body is an object in UTF-8 without doubled names, or the answer is a precise 4xx."""

    def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        """The body as a dict, parsed once; empty where there is none, of no type. ``silent`` is not heard: a body that
        cannot be read is told so.

        Raises ``ProblemError``: 413, 415, 400 ``MALFORMED_JSON``, 422 for what is not an object or holds text that
        no database can.
        """
        parsed = self.__dict__.get("_parsed_json")
        if parsed is None:
            # The plain spelling needs no parsing of its parameters; nearly all clients send it.
            if not force and self.environ.get("CONTENT_TYPE") != JSON_TYPE and self.mimetype != JSON_TYPE:
                if self.mimetype or self.get_data():
                    raise ProblemError(415, "UNSUPPORTED_MEDIA_TYPE", f"the body must be {JSON_TYPE}")
                return {}  # nothing was sent, as is right where all may be left out: an approval
            parsed = self.__dict__["_parsed_json"] = parse_object(self.get_data())
        return parsed

    def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False) -> Any:
        """The whole body, always kept. Raises ``ProblemError`` 413, and 400 when the client went away in its midst.

        Werkzeug's own reading cuts a chunked body off at the limit and takes what it has for all there is; and it
        asks the server once more after the last byte, which costs as much as the first time.
        """
        body = self.__dict__.get("_cached_data")
        if body is None:
            body = self.__dict__["_cached_data"] = self._read_body()
        return body.decode(errors="replace") if as_text else body

    def _load_form_data(self) -> None:
        """A form is read as any body is: werkzeug would read it out of sight of ``web/stalled_body.py``. Raises
        ``ProblemError`` as ``get_data``, and 422 for U+0000, which no database can hold."""
        body = self.get_data()
        if b"%00" in body or b"\x00" in body:
            raise ProblemError(422, "VALIDATION_FAILED", "the form holds U+0000", errors=[("", "holds U+0000")])
        super()._load_form_data()

    def body_chunks(self, limit: int) -> Iterator[bytes]:
        """The body piece by piece, once, for what is too large to be kept in memory.

        Raises ``ProblemError`` 413 for more than ``limit`` bytes, at once where the body tells its length; and 400
        when the client went away in its midst.
        """
        environ = self.environ
        told, stream = environ.get("CONTENT_LENGTH"), environ["wsgi.input"]
        if not told and not environ.get("HTTP_TRANSFER_ENCODING"):
            return
        length = _length(told) if told else None
        if length is not None and length > limit:
            raise too_large(limit)
        left = limit + 1 if length is None else length
        while left and (chunk := _read(stream, min(left, CHUNK_BYTES))):
            left -= len(chunk)
            if length is None and left == 0:
                raise too_large(limit)
            yield chunk
        if length is not None and left:
            raise _incomplete()

    def _read_body(self) -> bytes:
        environ = self.environ
        told = environ.get("CONTENT_LENGTH")
        if told:
            # The limit is looked up only for a body that may reach it.
            length = _length(told)
            if length > MOST_BODY and length > (limit := self._limit()):
                raise too_large(limit)
            body = _read(environ["wsgi.input"], length)
            if len(body) < length:
                raise _incomplete()
            return body
        if not environ.get("HTTP_TRANSFER_ENCODING"):
            return b""
        limit = self._limit()
        body = _read(environ["wsgi.input"], limit + 1)
        if len(body) > limit:
            raise too_large(limit)
        return body

    def _limit(self) -> int:
        return self.max_content_length or MOST_BODY


def _length(told: str) -> int:
    return int(told) if told.isdecimal() and len(told) < 19 else 2**63


def _incomplete() -> ProblemError:
    return ProblemError(400, "INCOMPLETE_BODY", "the body ended before its length was reached")


def _read(stream: IO[bytes], most: int) -> bytes:
    """Read as long as the client takes, under the eyes of ``web/stalled_body.py``."""
    reader = get_ident()
    waiting_since_s[reader] = monotonic()
    try:
        return stream.read(most)
    finally:
        del waiting_since_s[reader]


def too_large(limit: int, what: str = "a body") -> ProblemError:
    """413: the body, or this part of it, has more than ``limit`` bytes, whether it says so or only turns out to."""
    # The server ends the connection, of which it has not read all, and does not always say so.
    headers = {"Connection": "close"}
    return ProblemError(413, "BODY_TOO_LARGE", f"{what} may have at most {limit} bytes", headers=headers, limit=limit)


def parse_object(body: bytes) -> dict[str, Any]:
    """The object that ``body`` spells.

    Raises ``ProblemError`` 400 ``MALFORMED_JSON`` for what is not JSON in UTF-8, names a member twice, is nested
    beyond reason or holds NaN or Infinity; 422 ``VALIDATION_FAILED`` for another value than an object, and for text
    with U+0000 or half of a surrogate pair.
    """
    try:
        value = _DECODER.decode(body.decode())
    except UnicodeDecodeError:
        raise _malformed("the body is not UTF-8") from None
    except RecursionError:
        raise _malformed("the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _malformed(_where(error)) from None
    except _NotStrictError as error:
        raise _malformed(str(error)) from None
    except ValueError:
        # Python refuses to read an integer of thousands of digits.
        raise _malformed("a number in the body is too long") from None
    if not isinstance(value, dict):
        raise ProblemError(422, "VALIDATION_FAILED", "the body must be a JSON object", errors=[("", NOT_AN_OBJECT)])
    # Both kinds of text can only be spelt with an escape: most bodies need no second look.
    if b"\\u" in body and (errors := list(_bad_texts(value, ""))):
        raise ProblemError(422, "VALIDATION_FAILED", "the body holds text that cannot be kept", errors=errors)
    return value


class _NotStrictError(ValueError):
    """What Python would read, and another reader otherwise."""


def _where(error: json.JSONDecodeError) -> str:
    if not error.doc.strip():
        return "the body is empty"
    return f"the body is not valid JSON: look at line {error.lineno}, column {error.colno}"


def _malformed(detail: str) -> ProblemError:
    return ProblemError(400, "MALFORMED_JSON", detail)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotStrictError("the body names a member twice")
    return members


def _not_a_number(text: str) -> NoReturn:
    raise _NotStrictError(f"{text} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise _NotStrictError("a number is out of range")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_not_a_number, parse_float=_finite)


def _bad_texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if "\x00" in value or not _is_utf8(value):
            yield path, "holds U+0000 or half of a surrogate pair"
    elif isinstance(value, dict):
        for name, item in value.items():
            shown = name.encode("utf-8", "replace").decode()
            if shown != name or "\x00" in name:
                yield path, "has a member whose name holds U+0000 or half of a surrogate pair"
            yield from _bad_texts(item, f"{path}.{shown}" if path else shown)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _bad_texts(item, f"{path}.{position}")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
