"""Webhooks over HTTP (API.md, Back office): made, listed, ended; their deliveries, and sending one again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field, field_validator

from coupon_workers.notify.delivery_log import AttemptRecord, DeliveryRecord, list_deliveries, replay_delivery
from coupon_workers.notify.event import EVENTS, EventName
from coupon_workers.notify.webhook import WebhookRecord, create_webhook, end_webhook, list_webhooks
from coupon_workers.notify.webhook_url import LONGEST_URL
from coupon_workers.runtime.clock import rfc3339
from web.auth import require
from web.context import principal, services
from web.idempotent import idempotent, idempotent_but, subject_id
from web.page import PageQuery, page
from web.path_id import path_id
from web.problem_code import refuses

api = APIBlueprint("webhooks", __name__, abp_tags=[Tag(name="Webhooks", description="Other systems told of events")])

State = Literal["pending", "delivered", "dead", "discarded"]

LONGEST_DESCRIPTION = 200


class WebhookBody(BaseModel):
    """A webhook to make."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(min_length=1, max_length=LONGEST_URL)] = Field(examples=["https://shop.example/hooks"])
    events: Annotated[list[EventName], Field(max_length=len(EVENTS))] | None = Field(
        None, description="empty or absent: all", examples=[["coupon.issued"]]
    )
    description: Annotated[str, Field(min_length=1, max_length=LONGEST_DESCRIPTION)] | None = None

    @field_validator("description")
    @classmethod
    def _prints(cls, text: str | None) -> str | None:
        if text is not None and not text.isprintable():
            raise ValueError("must be printable characters")
        return text


class WebhookAnswer(BaseModel):
    """A webhook, without its secret."""

    webhook_id: str
    url: str
    events: list[str] = Field(description="empty: all")
    description: str | None
    created_by: str = Field(description="the id of the key that made it")
    created_at: str
    disabled_at: str | None
    disabled_reason: str | None


class NewWebhookAnswer(WebhookAnswer):
    """A webhook just made. ``secret`` is shown in this answer only; a repetition of the request has null."""

    secret: str | None


class WebhookPage(BaseModel):
    """Webhooks, newest first."""

    items: list[WebhookAnswer]
    next_cursor: str | None


class AttemptAnswer(BaseModel):
    """One attempt: ``status`` if the endpoint answered, ``error`` if it did not take the message."""

    attempt_no: int
    at: str
    elapsed_ms: int
    status: int | None
    error: str | None


class DeliveryAnswer(BaseModel):
    """A message on its way to a webhook, or at its end, with its attempts, oldest first."""

    delivery_id: str
    message_id: str = Field(description="the header `webhook-id`")
    event: str
    state: State
    data: dict[str, Any]
    attempts: int
    next_attempt_at: str | None
    last_status: int | None
    last_error: str | None
    occurred_at: str
    created_at: str
    finished_at: str | None
    log: list[AttemptAnswer]


class DeliveryPage(BaseModel):
    """Deliveries, newest first."""

    items: list[DeliveryAnswer]
    next_cursor: str | None


class WebhookPath(BaseModel):
    """The webhook in the path."""

    webhook_id: str


class DeliveryPath(WebhookPath):
    """The delivery in the path."""

    delivery_id: str


class DeliveryQuery(PageQuery):
    """Which deliveries, and which page of them."""

    state: State | None = None


@api.post("/v1/webhooks", summary="Make a webhook", responses={201: NewWebhookAnswer})
@require("admin")
@idempotent_but("secret")
def post_webhook(body: WebhookBody) -> Any:
    """Events are sent to `url` as signed messages (Standard Webhooks). The secret to verify them with is shown once.
    Redirects are not followed; private addresses are refused unless the settings allow them."""
    made = create_webhook(
        services(),
        subject_id(),
        url=body.url,
        events=body.events or [],
        description=body.description,
        created_by=principal().key_id,
    )
    return {"secret": made.secret, **_show(made.record)}, 201


@api.get("/v1/webhooks", summary="List webhooks", responses={200: WebhookPage})
@require("admin")
def get_webhooks(query: PageQuery) -> Any:
    """Newest first; ended ones for as long as their deliveries are kept."""
    webhooks = list_webhooks(services(), limit=query.limit + 1, before=query.before)
    return page(webhooks, query.limit, _show, lambda webhook: [webhook.webhook_id])


@api.delete("/v1/webhooks/<webhook_id>", summary="End a webhook", responses={200: WebhookAnswer})
@require("admin")
@refuses("WEBHOOK_NOT_FOUND")
@idempotent
def delete_webhook(path: WebhookPath) -> Any:
    """It is told of nothing any more, and what was on its way is discarded. Ending it again changes nothing."""
    return _show(end_webhook(services(), path_id(path.webhook_id, "WEBHOOK_NOT_FOUND"), "deleted"))


@api.get("/v1/webhooks/<webhook_id>/deliveries", summary="Deliveries of a webhook", responses={200: DeliveryPage})
@require("admin")
@refuses("WEBHOOK_NOT_FOUND")
def get_deliveries(path: WebhookPath, query: DeliveryQuery) -> Any:
    """Newest first, kept for thirty days. `dead` ones were given up after the last attempt."""
    deliveries = list_deliveries(
        services(),
        path_id(path.webhook_id, "WEBHOOK_NOT_FOUND"),
        limit=query.limit + 1,
        before=query.before,
        state=query.state,
    )
    return page(deliveries, query.limit, _show_delivery, lambda delivery: [delivery.delivery_id])


@api.post(
    "/v1/webhooks/<webhook_id>/deliveries/<delivery_id>/replay",
    summary="Send a message again",
    responses={202: DeliveryAnswer},
)
@require("admin")
@refuses("WEBHOOK_NOT_FOUND", "DELIVERY_NOT_FOUND", "WEBHOOK_DISABLED")
@idempotent
def post_replay(path: DeliveryPath) -> Any:
    """At once, under the same message id, whatever became of it before. Later messages of the same coupon wait for
    it."""
    webhook_id = path_id(path.webhook_id, "WEBHOOK_NOT_FOUND")
    delivery_id = path_id(path.delivery_id, "DELIVERY_NOT_FOUND")
    return _show_delivery(replay_delivery(services(), webhook_id, delivery_id)), 202


def _show(webhook: WebhookRecord) -> dict[str, Any]:
    return {
        "webhook_id": str(webhook.webhook_id),
        "url": webhook.url,
        "events": list(webhook.events),
        "description": webhook.description,
        "created_by": webhook.created_by,
        "created_at": rfc3339(webhook.created_at),
        "disabled_at": rfc3339(webhook.disabled_at) if webhook.disabled_at else None,
        "disabled_reason": webhook.disabled_reason,
    }


def _show_delivery(delivery: DeliveryRecord) -> dict[str, Any]:
    return {
        "delivery_id": str(delivery.delivery_id),
        "message_id": delivery.message_id,
        "event": delivery.event,
        "state": delivery.state,
        "data": delivery.data,
        "attempts": delivery.attempts,
        "next_attempt_at": rfc3339(delivery.next_attempt_at) if delivery.next_attempt_at else None,
        "last_status": delivery.last_status,
        "last_error": delivery.last_error,
        "occurred_at": rfc3339(delivery.occurred_at),
        "created_at": rfc3339(delivery.created_at),
        "finished_at": rfc3339(delivery.finished_at) if delivery.finished_at else None,
        "log": [_show_attempt(attempt) for attempt in delivery.log],
    }


def _show_attempt(attempt: AttemptRecord) -> dict[str, Any]:
    return {
        "attempt_no": attempt.attempt_no,
        "at": rfc3339(attempt.at),
        "elapsed_ms": attempt.elapsed_ms,
        "status": attempt.status,
        "error": attempt.error,
    }
