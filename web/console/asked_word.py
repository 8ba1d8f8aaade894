"""A word in the address that narrows a list down, such as a status."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from flask import request

Word = TypeVar("Word", bound=StrEnum)


def asked_word(words: type[Word], name: str, default: str = "") -> Word | None:
    """Which of ``words`` the parameter ``name`` is; None, for all of them, when it is absent or another."""
    asked = request.args.get(name, default)
    return words(asked) if asked in set(words) else None
