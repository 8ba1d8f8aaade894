"""Reads an expression over users' tags (API.md, Campaign batches): ``vip and not churned``.

::

    any  := all ("or" all)*
    all  := part ("and" part)*
    part := "not" part | "(" any ")" | tag

A tag is a word of letters, digits and ``_ - . :``, or any printable text in double quotes, in which two stand for one.
Keywords are read in any case, tags as they are written.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from coupon_workers.campaigns.tag_tree import KEYWORDS, Tag, TagTree, all_of, any_of, is_bounded, negation, text_of
from coupon_workers.errors import InvalidInput

MAX_LENGTH = 16 * 1024
"""Characters of an expression."""

MAX_DEPTH = 32
"""Of parentheses and negations in one another: the tree is walked by recursion, and so is the SQL made of it."""

MAX_TAGS = 100
"""Tags in an expression: each is a look-up of its own."""

TAG_LENGTH = 64
_SHOWN_LENGTH = 80

_TOKEN = re.compile(r'\s*+(?:(?P<word>[\w.:-]++)|"(?P<quoted>(?:[^"]|"")*+)"|(?P<sign>[()])|(?P<end>\Z))')
_BLANK = re.compile(r"\s*+")


class TagExpressionError(InvalidInput):
    """The expression cannot be read; ``position`` counts characters from 1."""

    def __init__(self, position: int, message: str) -> None:
        self.position = position
        super().__init__([("tags", f"{message}, at character {position}")])


class _Token(NamedTuple):
    kind: str
    """``tag``, ``and``, ``or``, ``not``, ``(``, ``)`` or ``end``."""

    text: str
    position: int


def read_tag_expression(text: str) -> TagTree:
    """The tree of an expression.

    It must be bounded by a tag to be had: ``vip and not churned`` is, ``not churned`` is everybody else. Raises
    ``TagExpressionError``.
    """
    tree = _Reader(text).read()
    if not is_bounded(tree):
        everybody = _shortened(text_of(tree))
        raise TagExpressionError(1, f'"{everybody}" means users without any tag, too: join it to a tag by "and"')
    return tree


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


class _Reader:
    """Recursive descent, one token ahead; its depth is bounded."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise TagExpressionError(MAX_LENGTH + 1, f"has more than {MAX_LENGTH} characters")
        self._text = text
        self._at = 0
        self._depth = 0
        self._tags = 0
        self._next = self._token()

    def read(self) -> TagTree:
        tree = self._any()
        if self._next.kind != "end":
            raise self._expected('"and", "or" or the end')
        return tree

    def _any(self) -> TagTree:
        parts = [self._all()]
        while self._took("or"):
            parts.append(self._all())
        return any_of(parts)

    def _all(self) -> TagTree:
        parts = [self._part()]
        while self._took("and"):
            parts.append(self._part())
        return all_of(parts)

    def _part(self) -> TagTree:
        token = self._next
        if self._took("tag"):
            self._tags += 1
            if self._tags > MAX_TAGS:
                raise TagExpressionError(token.position, f"has more than {MAX_TAGS} tags")
            return Tag(token.text)
        if token.kind not in ("not", "("):
            raise self._expected('a tag, "not" or "("')
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TagExpressionError(token.position, f'nests "(" and "not" more than {MAX_DEPTH} deep')
        if self._took("not"):
            tree = negation(self._part())
        else:
            self._took("(")
            tree = self._any()
            if not self._took(")"):
                raise self._expected(f'"and", "or" or the ")" of the "(" at {token.position}')
        self._depth -= 1
        return tree

    def _took(self, kind: str) -> bool:
        if self._next.kind != kind:
            return False
        self._next = self._token()
        return True

    def _expected(self, what: str) -> TagExpressionError:
        found = "the end" if self._next.kind == "end" else f'"{_shortened(self._next.text)}"'
        return TagExpressionError(self._next.position, f"expected {what}, found {found}")

    def _token(self) -> _Token:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._unreadable()
        self._at = found.end()
        kind, text = str(found.lastgroup), found[str(found.lastgroup)]
        position = found.start(kind) + 1 - (kind == "quoted")
        if kind == "quoted":
            text = text.replace('""', '"')
        if kind == "word" and text.lower() in KEYWORDS:
            return _Token(text.lower(), text, position)
        if kind in ("word", "quoted"):
            self._check_tag(text, position)
            return _Token("tag", text, position)
        return _Token(text or "end", text, position)

    def _check_tag(self, name: str, position: int) -> None:
        if not 0 < len(name) <= TAG_LENGTH or not name.isprintable():
            raise TagExpressionError(position, f"a tag must have 1 to {TAG_LENGTH} printable characters")

    def _unreadable(self) -> TagExpressionError:
        blank = _BLANK.match(self._text, self._at)
        position = blank.end() if blank else self._at
        if self._text[position] == '"':
            return TagExpressionError(position + 1, "the quotes are never closed")
        return TagExpressionError(
            position + 1, f"{self._text[position]!r} is not of an expression; quote a tag with it"
        )
