"""Rebuild a template's keys in Redis."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.claiming.preheat import preheat_template as preheat
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.runtime.task import Queue


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=1, notify_shutdown=True, throws=(Conflict, NotFound))
def preheat_template(template_id: int) -> None:
    """Preheat; a template that went away meanwhile is nobody's loss."""
    preheat(services(), template_id, wait=False)
