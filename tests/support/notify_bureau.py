"""Everything between the outbox and the endpoints, with a clock that a test moves."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from coupon_workers.notify.delivery import deliver
from coupon_workers.notify.relay import relay_outbox
from coupon_workers.notify.target import webhook_target
from coupon_workers.notify.webhook import NewWebhook, create_webhook
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.template import TEMPLATE_ID, insert_template


class Bureau:
    """``services`` with settings that reach this machine, unless ``changed`` says otherwise."""

    def __init__(self, services: Services, **changed: Any) -> None:
        self._ahead = timedelta(0)
        settings = services.settings.model_copy(update={"webhook_private": True, **changed})
        self.services = replace(services, settings=settings, clock=self.now)

    def now(self) -> datetime:
        """The bureau's time."""
        return utc_now() + self._ahead

    def move(self, **span: float) -> None:
        """Let time pass, and a little more for the jitter of back-off."""
        self._ahead += timedelta(**span) * 1.11

    def template(self, **columns: Any) -> int:
        """A template that users are told of."""
        return insert_template(self.services.engine, **columns)

    def webhook(self, url: str, *events: str) -> NewWebhook:
        """A webhook."""
        webhook_id = self.services.next_id(0)
        return create_webhook(self.services, webhook_id, url=url, events=events, description=None, created_by="tests")

    def tell(self, coupon_id: int, event: str = "coupon.issued", user: str = "ann", **detail: Any) -> int:
        """Put an event into the outbox; its number."""
        with self.services.engine.begin() as connection:
            return int(
                connection.execute(
                    text(
                        "INSERT INTO outbox (event, user_id, template_id, coupon_id, detail)"
                        " VALUES (:event, :user, :template_id, :coupon_id, CAST(:detail AS jsonb)) RETURNING outbox_id"
                    ),
                    {
                        "event": event,
                        "user": user,
                        "template_id": TEMPLATE_ID,
                        "coupon_id": coupon_id,
                        "detail": json.dumps(detail) if detail else None,
                    },
                ).scalar_one()
            )

    def relay(self, **options: Any) -> int:
        """A turn of the relay."""
        return relay_outbox(self.services, **options)

    def route(self, *coupons: int) -> None:
        """An event of each of these coupons, passed on."""
        for coupon in coupons:
            self.tell(coupon)
        self.relay()

    def deliver(self, to: NewWebhook | str, **options: Any) -> int:
        """A turn of a target."""
        return deliver(self.services, to if isinstance(to, str) else webhook_target(to.record.webhook_id), **options)

    def rows(self, statement: str, **named: Any) -> list[tuple[Any, ...]]:
        """What the database answers."""
        with self.services.engine.begin() as connection:
            return [tuple(row) for row in connection.execute(text(statement), named)]

    def run(self, statement: str, **named: Any) -> None:
        """Change the database by hand."""
        with self.services.engine.begin() as connection:
            connection.execute(text(statement), named)

    def states(self) -> list[tuple[int, str, int]]:
        """Coupon, state and attempts of each delivery, in the order of events."""
        return self.rows("SELECT coupon_id, state, attempts FROM delivery ORDER BY outbox_id, target")

    def errors(self) -> list[str | None]:
        """The last error of each delivery, in the order of events."""
        return [row[0] for row in self.rows("SELECT last_error FROM delivery ORDER BY outbox_id, target")]
