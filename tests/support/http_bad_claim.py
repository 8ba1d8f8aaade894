"""Claims that are none: what is sent, and the problem that must come back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.support.http_caller import JSON, claim_of

TEMPLATE = "TEMPLATE"
"""Stands for the id of a template that can be claimed."""

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Bad:
    """``body`` as bytes, or a claim that is spelt out; ``fields`` are those the problem must name."""

    name: str
    body: bytes | dict[str, Any] | list[Any]
    fields: tuple[str, ...] = ()
    status: int = 422
    code: str = "VALIDATION_FAILED"
    content_type: str = JSON

    def spelt(self, template_id: str) -> bytes:
        """The bytes to send."""
        raw = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return raw.replace(TEMPLATE.encode(), template_id.encode())


def _field(name: str, *values: Any) -> list[Bad]:
    good = claim_of(TEMPLATE, "ann", "r1")
    return [Bad(f"{name}={_shown(value)}", good | {name: value}, (name,)) for value in values]


def _shown(value: Any) -> str:
    return ascii(value)[:30]


NO_TEXT: list[Any] = [None, True, False, 1.5, 1.0, -0.5, 1e300, [], ["a"], {}, {"a": 1}, ""]
ODD_TEXT = [
    "a\x00b",
    "\x00",
    "\ud800",
    "a\udfffb",
    "\ud83c",
    "a\nb",
    "a\tb",
    "a\x1bb",
    "a\x7fb",
    "a\x85b",
    "\u2028",
    "\u200b",
]
NO_ID: list[Any] = [
    *NO_TEXT, *ODD_TEXT, 0, -1, 2**53, 2**63, 10**100, "-1", "+1", "1.0", "1e3", " 1", "1 ", "1_000", "0x1", "abc",
    "٣", "9223372036854775808", "18446744073709551617", "9" * 40, "9" * 5_000, "' OR 1=1 --",
]  # fmt: skip
_SPACES = [" ", "a b", " ann", "ann ", "a\u00a0b", "a\u3000b"]

WRONG_VALUES = [
    *_field("template_id", *NO_ID),
    *_field("user_id", *NO_TEXT, *ODD_TEXT, *_SPACES, "u" * 65, "u" * 100_000, 2**53, -(2**53), 10**30),
    *_field("request_id", *NO_TEXT, *ODD_TEXT, 7, 0, "r" * 129, "r" * 100_000),
    *_field("channel", *(value for value in NO_TEXT if value is not None), *ODD_TEXT, 7, "c" * 129),
    *_field("device_id", 7, True, [], {}, "a\x00b", "\ud800", "d" * 129, ""),
    *_field("ip", 7, {}, "a\nb", "i" * 129),
    *_field("address_hash", [], False, "\x00", "h" * 129),
    *_field("claim_id", "1", None),
    *_field("Template_id", TEMPLATE),
    *_field("user_id ", "ann"),
    *_field("", "x"),
]

_GOOD = claim_of(TEMPLATE, "ann", "r1")

WRONG_SHAPES = [
    Bad("nothing named", {}, ("request_id", "template_id", "user_id")),
    *(Bad(f"no {name}", {k: v for k, v in _GOOD.items() if k != name}, (name,)) for name in _GOOD),
    Bad("all wrong at once", claim_of(0, "", [], channel=1, colour="red"),
        ("channel", "colour", "request_id", "template_id", "user_id")),
    Bad("a name with U+0000", {**_GOOD, "a\x00": 1}, ("",)),
    Bad("half a pair in a name", {**_GOOD, "\ud800": 1}, ("",)),
    Bad("text in a nested value", {**_GOOD, "device_id": {"deep": ["\x00"]}}, ("device_id.deep.0",)),
    Bad("a list", [_GOOD], ("",)),
    Bad("null", b"null", ("",)),
    Bad("a number", b"7", ("",)),
    Bad("a text that holds JSON", json.dumps(json.dumps(_GOOD)).encode(), ("",)),
    Bad("true", b"true", ("",)),
    Bad("ten thousand unknown fields", {**_GOOD, **{f"f{number}": 1 for number in range(10_000)}}, ("f0", "f7")),
]  # fmt: skip

_TEXT = json.dumps(_GOOD).encode()


def _unread(name: str, body: bytes) -> Bad:
    return Bad(name, body, (), 400, "MALFORMED_JSON")


def _with_number(number: bytes) -> bytes:
    return b'{"template_id": ' + number + b', "user_id": "ann", "request_id": "r1"}'


OTHER_TYPES = ("", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "json", "multipart/mixed")

UNREADABLE = [
    _unread("nothing", b""),
    _unread("spaces", b"  \n"),
    _unread("cut off", _TEXT[:-1]),
    _unread("two values", _TEXT + _TEXT),
    _unread("single quotes", _TEXT.replace(b'"', b"'")),
    _unread("a comma too many", _TEXT.replace(b"}", b",}")),
    _unread("a member named twice", _TEXT.replace(b"{", b'{"user_id": "eve", ', 1)),
    _unread("a nested member named twice", _TEXT.replace(b"}", b', "ip": {"a": 1, "a": 2}}')),
    _unread("NaN", _with_number(b"NaN")),
    _unread("Infinity", _with_number(b"-Infinity")),
    _unread("a number beyond all", _with_number(b"1e999")),
    _unread("a mebibyte of digits", _with_number(b"1" * (MEBIBYTE - 100))),
    _unread("not UTF-8", _TEXT.replace(b"ann", b"\xff\xfe")),
    _unread("an overlong U+0000", _TEXT.replace(b"ann", b"\xc0\x80")),
    _unread("half a pair in bytes", _TEXT.replace(b"ann", b"\xed\xa0\x80")),
    _unread("UTF-16", json.dumps(_GOOD).encode("utf-16")),
    _unread("a mark of the byte order", b"\xef\xbb\xbf" + _TEXT),
    _unread("a raw U+0000", _TEXT.replace(b"ann", b"a\x00n")),
    _unread("a raw line break", _TEXT.replace(b"ann", b"a\nn")),
    _unread("deep lists", b"[" * 200_000),
    _unread("deep objects", b'{"a":' * 100_000),
    _unread("a form", b"template_id=1&user_id=ann"),
    _unread("XML", b"<claim/>"),
    Bad("digits in a text of nearly a mebibyte", _with_number(b'"' + b"9" * (MEBIBYTE - 100) + b'"'), ("template_id",)),
    Bad("more than a mebibyte", _TEXT + b" " * MEBIBYTE, (), 413, "BODY_TOO_LARGE"),
    *(Bad(f"as {name or 'nothing'}", _TEXT, (), 415, "UNSUPPORTED_MEDIA_TYPE", name) for name in OTHER_TYPES),
]  # fmt: skip

BAD_CLAIMS = [*WRONG_VALUES, *WRONG_SHAPES, *UNREADABLE]
