"""What the stories of a full demo play on: an operator's client, the stores to look into, and how large they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from coupon_workers.client.client import CouponClient
from coupon_workers.errors import CouponWorkersError
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.services import Services

PATIENCE_S, LOOK_EVERY_S = 60.0, 0.1
"""For what a worker does on an operator's word: a second as a rule, longer where processes have been killed."""

CLAIMS_A_STEP = 3_000
MOST_STEPS = 8
"""The stories grow with the claims of the sale up to this: beyond it they would show nothing more."""


@dataclass(frozen=True, slots=True)
class Stage:
    """``run`` keeps the names of two demos apart; ``scale`` is 1 to ``MOST_STEPS``, and every crowd is a multiple."""

    services: Services
    client: CouponClient
    run: str
    seed: int
    scale: int
    now: datetime

    @property
    def opened(self) -> str:
        """When everything here has begun."""
        return rfc3339(self.now - timedelta(minutes=1))

    @property
    def closes(self) -> str:
        """When it ends, long after the demo."""
        return rfc3339(self.now + timedelta(days=1))

    def open_template(self, name: str, **terms: Any) -> str:
        """Make a template of today and publish it; its id. Raises ``ClientError``."""
        template = self.client.templates.create(self.body(name, **terms))
        return self.client.templates.publish(template["template_id"])["template_id"]

    def body(self, name: str, **terms: Any) -> Mapping[str, Any]:
        """The body of such a template."""
        return {
            "template_no": f"{self.run}-{name.replace(' ', '-')}",
            "name": f"Demo {name}",
            "currency": "CNY",
            "claim_start": self.opened,
            "claim_end": self.closes,
            "validity": {"mode": "relative", "days": 7},
            **terms,
        }

    def wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        """Return when ``holds`` does. Raises ``CouponWorkersError`` with ``what`` after ``PATIENCE_S``."""
        gives_up = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > gives_up:
                raise CouponWorkersError(f"{what} within {PATIENCE_S:g} s")
            time.sleep(LOOK_EVERY_S)


def scale_of(claims: int) -> int:
    """How large the stories are beside a sale of so many claims."""
    return max(1, min(MOST_STEPS, claims // CLAIMS_A_STEP))
