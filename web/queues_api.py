"""Queues and dead letters over HTTP (API.md, Operations)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel

from coupon_workers.audit import dead_letter_desk as desk
from coupon_workers.runtime.clock import rfc3339, to_ms
from coupon_workers.runtime.dead_letter import DeadLetter, list_dead_letters
from coupon_workers.runtime.queue_depth import PendingDepth, pending_depths
from web.auth import require
from web.context import services, web_of_app
from web.idempotent import idempotent
from web.page import PageQuery, page, read_cursor
from web.problem import plain
from web.problem_code import refuses

api = APIBlueprint("queues", __name__, abp_tags=[Tag(name="Operations")])

MOST_PENDING = 200
"""Templates shown with claims that wait, the longest waiting first; ``pending_total`` counts them all."""


class QueueAnswer(BaseModel):
    """A queue of messages. ``age_ms``: of the oldest that waits; null when none does, or RabbitMQ does not tell."""

    name: str
    depth: int
    age_ms: int | None
    delayed: int
    in_work: int | None
    dead_letters: int


class PendingAnswer(BaseModel):
    """Accepted claims of one template's bucket that are not settled yet."""

    template_id: str
    bucket: int
    depth: int
    oldest_age_ms: int


class QueuesAnswer(BaseModel):
    """What waits in the broker, and which accepted claims wait in the pending streams."""

    queues: list[QueueAnswer]
    pending_claims: list[PendingAnswer]
    pending_total: int


class DeadLetterAnswer(BaseModel):
    """A message that was given up. ``actor`` and ``args`` are null when nobody can read it."""

    id: str
    queue: str
    actor: str | None
    args: list[Any] | None
    error: str | None
    died_at: str


class DeadLetterPage(BaseModel):
    """Dead letters queue by queue, the latest first."""

    items: list[DeadLetterAnswer]
    next_cursor: str | None


class DeadLetterPath(BaseModel):
    """The message in the path."""

    message_id: str


class DeadLetterEnd(BaseModel):
    """What became of it."""

    id: str
    status: str


@api.get("/v1/queues", summary="Depth and age of the queues", responses={200: QueuesAnswer})
@require("ops")
def get_queues() -> Any:
    """Messages in the broker's queues, and accepted claims that wait to be settled, the longest waiting first."""
    pending = pending_depths(services().redis)
    return {
        "queues": [asdict(queue) for queue in web_of_app().queues.depths()],
        "pending_claims": [_show_pending(bucket) for bucket in pending[:MOST_PENDING]],
        "pending_total": sum(bucket.depth for bucket in pending),
    }


@api.get("/v1/dead-letters", summary="List dead letters", responses={200: DeadLetterPage})
@require("ops")
@refuses("NOT_A_REDIS_BROKER")
def get_dead_letters(query: PageQuery) -> Any:
    """Messages that were given up, queue by queue, the latest first."""
    after = read_cursor(query.cursor, str, int, str)
    letters = list_dead_letters(
        web_of_app().queues.redis, limit=query.limit + 1, after=(after[0], after[1], after[2]) if after else None
    )
    return page(letters, query.limit, _show, lambda letter: [letter.queue, to_ms(letter.died_at), letter.id])


@api.post("/v1/dead-letters/<message_id>/replay", summary="Send it again", responses={200: DeadLetterEnd})
@require("ops")
@refuses("DEAD_LETTER_NOT_FOUND", "UNREADABLE", "NOT_A_REDIS_BROKER")
@idempotent
def post_replay(path: DeadLetterPath) -> Any:
    """Back to its queue, as new. Asked twice it is sent once: the second time there is no such dead letter."""
    desk.replay(services().engine, web_of_app().queues.redis, path.message_id)
    return {"id": path.message_id, "status": "replayed"}


@api.post("/v1/dead-letters/<message_id>/discard", summary="Throw it away", responses={200: DeadLetterEnd})
@require("ops")
@refuses("DEAD_LETTER_NOT_FOUND", "NOT_A_REDIS_BROKER")
@idempotent
def post_discard(path: DeadLetterPath) -> Any:
    """For good. The second time there is no such dead letter."""
    desk.discard(services().engine, web_of_app().queues.redis, path.message_id)
    return {"id": path.message_id, "status": "discarded"}


def _show_pending(bucket: PendingDepth) -> dict[str, Any]:
    return {**asdict(bucket), "template_id": str(bucket.template_id)}


def _show(letter: DeadLetter) -> dict[str, Any]:
    return {**asdict(letter), "args": plain(letter.args), "died_at": rfc3339(letter.died_at)}
