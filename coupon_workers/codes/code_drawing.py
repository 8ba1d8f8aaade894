"""Drawing codes: bytes of the operating system's generator, each character as likely as any other."""

from __future__ import annotations

import secrets

from coupon_workers.codes.alphabet import ALPHABET
from coupon_workers.codes.check_digit import BASE, check_value
from coupon_workers.codes.code_form import CodeForm

_FAIR = 256 // BASE * BASE
_VALUES = bytes(byte % BASE for byte in range(256))
_REJECTED = bytes(range(_FAIR, 256))
"""Bytes that would make the first characters of the alphabet likelier than the others."""
_LETTERS = bytes(ord(ALPHABET[value % BASE]) for value in range(256))


def draw_codes(form: CodeForm, count: int) -> list[str]:
    """``count`` codes without their prefix, in canonical form. Two may be equal: whoever stores them sees to that."""
    values = _draw_values(form.drawn * count)
    codes = (values[at : at + form.drawn] for at in range(0, len(values), form.drawn))
    if form.check_digit:
        codes = (code + bytes((check_value(code),)) for code in codes)
    letters = b"".join(codes).translate(_LETTERS).decode("ascii")
    return [letters[at : at + form.length] for at in range(0, len(letters), form.length)]


def _draw_values(count: int) -> bytes:
    values = b""
    while (missing := count - len(values)) > 0:
        values += secrets.token_bytes(missing + missing // 64 + 16).translate(_VALUES, _REJECTED)
    return values[:count]
