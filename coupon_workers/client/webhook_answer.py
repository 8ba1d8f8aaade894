"""API keys, webhooks and deliveries, as they are answered: names and fields are those of the published description."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class KeyAnswer(TypedDict):
    """A key, without the key."""

    key_id: str
    name: str
    scopes: list[str]
    signed: bool
    created_at: str
    revoked_at: str | None


class NewKeyAnswer(KeyAnswer):
    """A key just made. `key` is shown in this answer only; a repetition of the request has null."""

    key: str | None


class WebhookAnswer(TypedDict):
    """A webhook, without its secret."""

    webhook_id: str
    url: str
    events: list[str]
    description: str | None
    created_by: str
    created_at: str
    disabled_at: str | None
    disabled_reason: str | None


class NewWebhookAnswer(WebhookAnswer):
    """A webhook just made. `secret` is shown in this answer only; a repetition of the request has null."""

    secret: str | None


class AttemptAnswer(TypedDict):
    """One attempt: `status` if the endpoint answered, `error` if it did not take the message."""

    attempt_no: int
    at: str
    elapsed_ms: int
    status: int | None
    error: str | None


class DeliveryAnswer(TypedDict):
    """A message on its way to a webhook, or at its end, with its attempts, oldest first."""

    delivery_id: str
    message_id: str
    event: str
    state: Literal["pending", "delivered", "dead", "discarded"]
    data: dict[str, Any]
    attempts: int
    next_attempt_at: str | None
    last_status: int | None
    last_error: str | None
    occurred_at: str
    created_at: str
    finished_at: str | None
    log: list[AttemptAnswer]
