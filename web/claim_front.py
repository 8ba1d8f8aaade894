"""The claim desk of this process: one for all its threads, made at the first claim, after the fork."""

from __future__ import annotations

from threading import Lock

from flask import Flask, current_app

from coupon_workers.claiming.front import ClaimFront
from web.context import web_of

_EXTENSION = "coupon_workers_claim_front"
_lock = Lock()


def claim_front() -> ClaimFront:
    """The desk of the application that serves this request, as ``claim_front_of``."""
    return claim_front_of(current_app)


def claim_front_of(app: Flask) -> ClaimFront:
    """The desk. Raises ``StoreUnavailable`` when Redis has no address."""
    front: ClaimFront | None = app.extensions.get(_EXTENSION)
    if front is None:
        with _lock:
            front = app.extensions.setdefault(_EXTENSION, ClaimFront(web_of(app).services))
    return front
