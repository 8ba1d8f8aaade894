"""The keys under which codes are hashed: the newest for new batches, older ones to look up by (DESIGN 11).

A ring is ``COUPON_CODE_PEPPER``: one secret, or several with commas between them, the newest first. A pepper's id is
made of it, so that a batch can name its own without telling it.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import SecretStr

from coupon_workers.errors import Conflict
from coupon_workers.runtime.settings import Settings

HASH_BYTES = 16
"""Of HMAC-SHA256's 32: two of ten million codes meet by chance once in 10^24."""


@dataclass(frozen=True, slots=True)
class Pepper:
    """One secret."""

    secret: bytes

    def __repr__(self) -> str:
        return f"Pepper({self.pepper_id})"

    @property
    def pepper_id(self) -> str:
        """Eight characters that say which one it is, and nothing of it."""
        return self.derived("id")[:4].hex()

    def hash_of(self, canonical: str) -> bytes:
        """What is stored of a code."""
        return hmac.digest(self.secret, canonical.encode(), "sha256")[:HASH_BYTES]

    def derived(self, purpose: str) -> bytes:
        """A key of 32 bytes for another purpose. No canonical code has a small letter in it."""
        return hmac.digest(self.secret, f"coupon-workers {purpose}".encode(), "sha256")


class PepperRing:
    """The peppers of ``COUPON_CODE_PEPPER``, the newest first."""

    def __init__(self, peppers: Sequence[Pepper]) -> None:
        self.peppers = tuple(peppers)
        self._by_id = {pepper.pepper_id: pepper for pepper in peppers}

    @property
    def newest(self) -> Pepper:
        """For new batches."""
        return self.peppers[0]

    def find(self, pepper_id: str) -> Pepper:
        """The pepper of a batch. Raises ``Conflict`` ``PEPPER_MISSING``: it was taken out of the ring too early."""
        if pepper_id not in self._by_id:
            raise Conflict("PEPPER_MISSING", f"pepper {pepper_id} is not in COUPON_CODE_PEPPER", pepper=pepper_id)
        return self._by_id[pepper_id]

    def hashes_of(self, canonical: str) -> list[bytes]:
        """What may be stored of a code, by each of the peppers."""
        return [pepper.hash_of(canonical) for pepper in self.peppers]


def pepper_ring(settings: Settings) -> PepperRing:
    """The ring of the settings. Raises ``Conflict`` ``CODES_NOT_SET_UP`` when there is none."""
    if settings.code_pepper is None:
        raise Conflict("CODES_NOT_SET_UP", "redeem codes need COUPON_CODE_PEPPER on every front and worker")
    return _ring(settings.code_pepper)


@lru_cache(maxsize=4)
def _ring(secret: SecretStr) -> PepperRing:
    return PepperRing([Pepper(part.encode()) for part in secret.get_secret_value().split(",")])
