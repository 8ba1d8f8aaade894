"""Who calls: the record of an API key, without the key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """What a key may be used for. A key has one scope or more; none includes another."""

    STOREFRONT = "storefront"
    ORDERS = "orders"
    ADMIN = "admin"
    OPS = "ops"


SCOPES = tuple(scope.value for scope in Scope)


@dataclass(frozen=True, slots=True)
class Principal:
    """A key that was verified. ``key_hash`` is its SHA-256 in hex: what a signed request is signed with."""

    key_id: str
    name: str
    scopes: frozenset[str]
    signed: bool
    key_hash: str
