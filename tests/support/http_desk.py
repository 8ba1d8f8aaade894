"""An operator who makes templates over HTTP, and moves them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from coupon_workers.runtime.clock import rfc3339
from tests.support.http_caller import Caller
from tests.support.http_reply import Reply


def from_now(**span: float) -> str:
    """An instant as text; ``from_now(hours=-1)`` is an hour ago."""
    return rfc3339(datetime.now(UTC).replace(microsecond=0) + timedelta(**span))


def template_body(**fields: Any) -> dict[str, Any]:
    """Ten units of 20.00 CNY, open from an hour ago until tomorrow, without limits per user, but for ``fields``."""
    return {
        "name": "Double Eleven 100-20",
        "type": "amount_off",
        "currency": "CNY",
        "amount": 2_000,
        "threshold": 10_000,
        "total_quantity": 10,
        "per_user_limit": None,
        "claim_start": from_now(hours=-1),
        "claim_end": from_now(days=1),
        "validity": {"mode": "relative", "days": 7},
        "timezone": "Asia/Shanghai",
        **fields,
    }


class Desk:
    """What an operator does with templates; ``admin`` has a key for it."""

    def __init__(self, admin: Caller) -> None:
        self.admin = admin

    def draft(self, **fields: Any) -> str:
        """A new draft; its id."""
        return str(self.admin.ask("POST", "/v1/templates", template_body(**fields)).ok(201)["template_id"])

    def open(self, **fields: Any) -> str:
        """A new template, published; its id."""
        template_id = self.draft(**fields)
        self.act(template_id, "publish").ok()
        return template_id

    def act(self, template_id: str, action: str) -> Reply:
        """POST to one of the template's actions."""
        return self.admin.ask("POST", f"/v1/templates/{template_id}/{action}")

    def change(self, template_id: str, **fields: Any) -> Reply:
        """PATCH."""
        return self.admin.ask("PATCH", f"/v1/templates/{template_id}", fields)

    def stock(self, template_id: str) -> dict[str, Any]:
        """The template's stock at this moment."""
        return dict(self.admin.ask("GET", f"/v1/templates/{template_id}").ok()["stock"])
