"""Calling settling back after a turn on a template (``claiming/turn.py``)."""

from __future__ import annotations

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import settle_claims

log = get_logger(__name__)


def call_settling_back(services: Services, template_id: int) -> None:
    """A settling that finds the turn taken leaves what is pending to whoever has it, taking him for another settling.

    Whoever is none calls this after his commit. Without a broker the claims wait for the sweep.
    """
    try:
        services.post.send(settle_claims(template_id, 0))
    except StoreUnavailable as error:
        log.warning("claims wait for the sweep", template_id=template_id, error=str(error))
