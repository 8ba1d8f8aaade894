"""The plain texts of a batch until they are fetched: sealed, so that a stolen database does not tell them.

AES-256-GCM under a key of the batch's pepper and number, with a drawn nonce for each part, whose number is
authenticated with it.
"""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from coupon_workers.codes.pepper_ring import Pepper
from coupon_workers.errors import CouponWorkersError

NONCE_BYTES = 12


class BrokenSeal(CouponWorkersError):  # noqa: N818 - it says what is the case
    """A part of an export is not what was stored."""


class ExportSeal:
    """Seals and opens the parts of one batch."""

    def __init__(self, pepper: Pepper, code_batch_id: int) -> None:
        self._cipher = AESGCM(pepper.derived(f"export {code_batch_id}"))

    def close(self, part_no: int, plain: bytes) -> bytes:
        """What is stored of a part: the nonce and the sealed text."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, str(part_no).encode())

    def open(self, part_no: int, sealed: bytes) -> bytes:
        """The plain text. Raises ``BrokenSeal``."""
        nonce, text = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, text, str(part_no).encode())
        except InvalidTag:
            raise BrokenSeal(f"part {part_no} cannot be opened") from None
