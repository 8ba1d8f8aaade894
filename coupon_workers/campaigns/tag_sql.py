"""An expression over tags as SQL: set operations on ``user_tag``, whose key is (user, tag)."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import CompoundSelect, Select, String, column, except_, intersect, select, table, union

from coupon_workers.campaigns.tag_tree import AnyOf, Negation, Tag, TagTree, is_bounded

_USER_TAG = table("user_tag", column("user_id", String), column("tag", String))

Users = Select[tuple[str]] | CompoundSelect[tuple[str]]
"""A query of one column, ``user_id``, each user once."""


class _Part(NamedTuple):
    """The users of the query, or all but these: what is left of "all" is taken away before any SQL is run."""

    users: Users
    all_but: bool


def users_with(tree: TagTree) -> Users:
    """The query for the users that are meant; tags are bound parameters.

    Raises ``ValueError`` for a tree that is not bounded (``is_bounded``).
    """
    if not is_bounded(tree):
        raise ValueError("the expression means users without any tag")
    return _part(tree).users


def _part(tree: TagTree) -> _Part:
    if isinstance(tree, Tag):
        return _Part(select(_USER_TAG.c.user_id).where(_USER_TAG.c.tag == tree.name), False)
    if isinstance(tree, Negation):
        users, all_but = _part(tree.part)
        return _Part(users, not all_but)
    parts = [_part(part) for part in tree.parts]
    # De Morgan: "a or not b" is all but "b and not a".
    some = isinstance(tree, AnyOf)
    common = [part.users for part in parts if part.all_but == some]
    others = [part.users for part in parts if part.all_but != some]
    if not common:
        return _Part(_union(others), not some)
    return _Part(_difference(_intersection(common), others), some)


def _union(parts: list[Users]) -> Users:
    return parts[0] if len(parts) == 1 else union(*parts)


def _intersection(parts: list[Users]) -> Users:
    return parts[0] if len(parts) == 1 else intersect(*parts)


def _difference(users: Users, others: list[Users]) -> Users:
    return except_(users, *others) if others else users
