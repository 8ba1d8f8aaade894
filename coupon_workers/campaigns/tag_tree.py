"""Expressions over a user's tags as immutable trees, in one form for each way of putting them together.

A tree is built by ``negation``, ``all_of`` and ``any_of`` only: like operators in one another are one, and two
negations are none. Then its text is read back as itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

KEYWORDS = frozenset(("and", "or", "not"))

_BARE = re.compile(r"[\w.:-]+")


@dataclass(frozen=True, slots=True)
class Tag:
    """Whoever has it."""

    name: str


@dataclass(frozen=True, slots=True)
class Negation:
    """Whoever is not in the part."""

    part: TagTree


@dataclass(frozen=True, slots=True)
class AllOf:
    """Whoever is in each of the parts, two or more."""

    parts: tuple[TagTree, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Whoever is in one of the parts, two or more."""

    parts: tuple[TagTree, ...]


TagTree = Tag | Negation | AllOf | AnyOf


def negation(part: TagTree) -> TagTree:
    """Not ``part``."""
    return part.part if isinstance(part, Negation) else Negation(part)


def all_of(parts: Iterable[TagTree]) -> TagTree:
    """All of one or more parts."""
    flat = [each for part in parts for each in (part.parts if isinstance(part, AllOf) else (part,))]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(parts: Iterable[TagTree]) -> TagTree:
    """Any of one or more parts."""
    flat = [each for part in parts for each in (part.parts if isinstance(part, AnyOf) else (part,))]
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def has_user(tree: TagTree, tags: Collection[str]) -> bool:
    """Whether a user with these tags is meant."""
    match tree:
        case Tag(name):
            return name in tags
        case Negation(part):
            return not has_user(part, tags)
        case AllOf(parts):
            return all(has_user(part, tags) for part in parts)
        case AnyOf(parts):
            return any(has_user(part, tags) for part in parts)


def is_bounded(tree: TagTree) -> bool:
    """Whether nobody without a tag can be meant: otherwise it would take a list of all users to find them."""
    match tree:
        case Tag():
            return True
        case Negation(part):
            return not is_bounded(part)
        case AllOf(parts):
            return any(map(is_bounded, parts))
        case AnyOf(parts):
            return all(map(is_bounded, parts))


def text_of(tree: TagTree) -> str:
    """The expression in its canonical text, which is read back as the same tree."""
    match tree:
        case Tag(name):
            is_bare = _BARE.fullmatch(name) and name.lower() not in KEYWORDS
            return name if is_bare else '"' + name.replace('"', '""') + '"'
        case Negation(part):
            return f"not {_within(part)}"
        case AllOf(parts):
            return " and ".join(f"({text_of(part)})" if isinstance(part, AnyOf) else text_of(part) for part in parts)
        case AnyOf(parts):
            return " or ".join(map(text_of, parts))


def _within(part: TagTree) -> str:
    return text_of(part) if isinstance(part, Tag) else f"({text_of(part)})"
