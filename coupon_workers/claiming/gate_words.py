"""The questions of the claim centre to a gate, as the bytes that go over the wire: packed once for all users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self

from coupon_workers.claiming.key import BucketKeys


class GateWords(NamedTuple):
    """``stock``: the keys of generation and stock. ``ask_taker``: the question for a user's count, but for the user."""

    stock: bytes
    ask_taker: bytes

    @classmethod
    def of(cls, keys: BucketKeys) -> Self:
        """Those of a bucket's gate."""
        return cls(packed_word(keys.generation) + packed_word(keys.stock), ask_field(keys.takers))


def ask_stocks(gates: Iterable[bytes]) -> list[bytes]:
    """One question for generation and stock of all the gates; none where there are none."""
    keys = list(gates)
    return [b"*%d\r\n" % (1 + 2 * len(keys)) + packed_word("MGET") + b"".join(keys)] if keys else []


def ask_field(key: str) -> bytes:
    """``HGET`` of a hash, but for its last word."""
    return b"*3\r\n" + packed_word("HGET") + packed_word(key)


def packed_word(text: str) -> bytes:
    """A word of a command."""
    raw = text.encode()
    return b"$%d\r\n%b\r\n" % (len(raw), raw)
