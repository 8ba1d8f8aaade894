"""The claim desk of this process: one for all its threads, made at the first claim, after the fork."""

from __future__ import annotations

from threading import Lock

from flask import current_app

from coupon_workers.claiming.front import ClaimFront
from web.context import services

_EXTENSION = "coupon_workers_claim_front"
_lock = Lock()


def claim_front() -> ClaimFront:
    """The desk. Raises ``StoreUnavailable`` when Redis has no address."""
    front: ClaimFront | None = current_app.extensions.get(_EXTENSION)
    if front is None:
        with _lock:
            front = current_app.extensions.setdefault(_EXTENSION, ClaimFront(services()))
    return front
