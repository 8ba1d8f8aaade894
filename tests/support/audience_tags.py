"""Trees of tags for tests, and their texts in other words."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from coupon_workers.campaigns.tag_tree import Tag, TagTree, all_of, any_of, negation

NAMES = ("a", "b", "会员", "x y", 'q"t', "and")
TAG_SETS = [set(chosen) for size in range(len(NAMES) + 1) for chosen in combinations(NAMES, size)]

_TOKENS = re.compile(r'"(?:[^"]|"")*"|[()]|[^\s()"]+')
_SIGNS = {"(", ")", "and", "or", "not"}


def trees() -> st.SearchStrategy[TagTree]:
    """Any tree over a few names, bounded or not."""
    return st.recursive(
        st.sampled_from(NAMES).map(Tag),
        lambda parts: st.one_of(
            parts.map(negation),
            st.lists(parts, min_size=1, max_size=3).map(all_of),
            st.lists(parts, min_size=1, max_size=3).map(any_of),
        ),
        max_leaves=10,
    )


def noise(text: str, draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """The same expression, written otherwise."""
    blanks = st.sampled_from((" ", "\t", "\n  "))
    words = []
    for token in _TOKENS.findall(text):
        if token in _SIGNS:
            words.append(token.upper() if draw(st.booleans()) else token)
        else:
            form = draw(st.sampled_from(("{}", "({})", '"{}"' if token[0] != '"' else "{}")))
            words.append(form.format(token))
    return draw(blanks).join(words)


def python_of(text: str) -> str:
    """The expression as one of Python's, over a set ``tags``."""
    return " ".join(token if token in _SIGNS else f"({_name(token)!r} in tags)" for token in _TOKENS.findall(text))


def _name(token: str) -> str:
    return token[1:-1].replace('""', '"') if token[0] == '"' else token
