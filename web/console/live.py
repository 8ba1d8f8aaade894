"""Campaigns as they run: all at a glance, and one of them second by second. Scripts ask the data addresses."""

from __future__ import annotations

from typing import Any

from flask import request

from coupon_workers.access.principal import Scope
from coupon_workers.claiming.live_view import LiveTemplate, last_whole_second, read_latency, read_live
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import StoreUnavailable
from coupon_workers.templates import template_reading as reading
from coupon_workers.templates.template_status import TemplateStatus
from web.console.blueprint import console
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.rendering import render
from web.console.word import word
from web.context import services, web_of_app
from web.path_id import path_id

HISTORY_S = 300
"""How far back a picture begins when it is opened."""

GLANCE_S = 10
"""Over how many seconds the list tells claims a second."""

MOST_LISTED = 50

RUNNING = (TemplateStatus.ACTIVE, TemplateStatus.PAUSED, TemplateStatus.SCHEDULED)


@console.get("/live")
@shown_to(Scope.ADMIN, Scope.OPS)
def live() -> Any:
    """What runs, pauses or is about to begin."""
    found = [
        template for status in RUNNING for template in reading.read_page(services(), limit=MOST_LISTED, status=status)
    ]
    return render("live.html", templates=found[:MOST_LISTED])


@console.get("/live/<template_id>")
@shown_to(Scope.ADMIN, Scope.OPS)
def live_template(template_id: str) -> Any:
    """One of them, in charts that move."""
    template = reading.read_one(services(), path_id(template_id, "TEMPLATE_NOT_FOUND"))
    outcomes = {outcome.value: word(outcome.value) for outcome in ClaimOutcome}
    return render("live_template.html", template=template, outcomes=outcomes)


@console.get("/data/live")
@shown_to(Scope.ADMIN, Scope.OPS)
def live_data() -> dict[str, Any]:
    """The rates, stock and queue of the templates named by ``id``, and the queues of messages."""
    asked = [path_id(text, "TEMPLATE_NOT_FOUND") for text in request.args.getlist("id")[:MOST_LISTED]]
    now = last_whole_second(services())
    return {
        "templates": [_glance(each) for each in read_live(services(), asked, now - GLANCE_S + 1)],
        "queues": _queues(),
    }


@console.get("/data/live/<template_id>")
@shown_to(Scope.ADMIN, Scope.OPS)
def live_template_data(template_id: str) -> dict[str, Any]:
    """The seconds after ``after`` (of the epoch), at most the last five minutes; and what is left and waits now."""
    number = path_id(template_id, "TEMPLATE_NOT_FOUND")
    now = last_whole_second(services())
    after = request.args.get("after", 0, type=int)
    since = min(max(after, now - HISTORY_S), now) + 1
    [found] = read_live(services(), [number], since)
    template = reading.read_one(services(), number)
    return {
        "now": now,
        "status": template.status.value,
        "status_word": word(template.status.value),
        "total": template.stock.total,
        "issued": template.stock.issued,
        "remaining": template.stock.remaining,
        "warmed": found.warmed,
        "queued": found.queued,
        "oldest_ms": found.oldest_ms,
        "seconds": {str(second): outcomes for second, outcomes in sorted(found.seconds.items())},
        "latency": [
            {"second": each.second, "median_ms": each.median_ms, "p99_ms": each.p99_ms}
            for each in read_latency(services(), number, since)
        ],
    }


def _glance(template: LiveTemplate) -> dict[str, Any]:
    accepted = sum(outcomes.get("ACCEPTED", 0) for outcomes in template.seconds.values())
    answered = sum(sum(outcomes.values()) for outcomes in template.seconds.values())
    return {
        "id": str(template.template_id),
        "warmed": template.warmed,
        "remaining": template.remaining,
        "queued": template.queued,
        "oldest_ms": template.oldest_ms,
        "accepted_rate": round(accepted / GLANCE_S, 1),
        "other_rate": round((answered - accepted) / GLANCE_S, 1),
    }


def _queues() -> list[dict[str, Any]] | str:
    """Each queue of messages; or, when the broker does not answer, a word on that."""
    try:
        depths = web_of_app().queues.depths()
    except StoreUnavailable:
        return gettext("The broker does not answer.")
    return [
        {"name": queue.name, "depth": queue.depth, "age_ms": queue.age_ms, "dead": queue.dead_letters}
        for queue in depths
    ]
