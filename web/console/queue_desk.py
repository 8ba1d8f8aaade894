"""The broker's queues, what was given up in them, and the jobs of the scheduler: for whoever is on duty."""

from __future__ import annotations

from typing import Any

from flask import url_for

from coupon_workers.access.principal import Scope
from coupon_workers.audit import dead_letter_desk as desk
from coupon_workers.errors import Conflict
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.dead_letter import DeadLetter, list_dead_letters
from coupon_workers.runtime.queue_depth import pending_depths
from coupon_workers.scheduling.extra_run import run_now
from coupon_workers.scheduling.job_reading import read_jobs
from web.console.blueprint import console
from web.console.form import allotted_id, taken_id
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing, cursor_of
from web.console.notice import done
from web.console.rendering import render
from web.context import principal, services, web_of_app

MOST_PENDING = 20
"""Templates shown with claims that wait, the longest waiting first."""


@console.get("/queues")
@shown_to(Scope.OPS)
def queues() -> Any:
    """What waits in the broker, and which accepted claims wait to be settled."""
    pending = pending_depths(services().redis)
    return render(
        "queues.html",
        queues=web_of_app().queues.depths(),
        pending=pending[:MOST_PENDING],
        pending_total=sum(bucket.depth for bucket in pending),
    )


@console.get("/dead-letters")
@shown_to(Scope.OPS)
def dead_letters() -> Any:
    """Messages that were given up, queue by queue, the latest first. RabbitMQ keeps its own."""
    position = cursor_of(str, int, str)
    after = (position[0], position[1], position[2]) if position else None
    found: list[DeadLetter] = []
    ours = True
    try:
        found = list_dead_letters(web_of_app().queues.redis, limit=PAGE_SIZE + 1, after=after)
    except Conflict:
        ours = False
    listing = Listing(found, lambda letter: [letter.queue, to_ms(letter.died_at), letter.id])
    return render("dead_letters.html", listing=listing, ours=ours)


@console.post("/dead-letters/<message_id>/replay")
@shown_to(Scope.OPS)
def replay_letter(message_id: str) -> Any:
    """Back to its queue, as new."""
    desk.replay(services().engine, web_of_app().queues.redis, message_id)
    return done(url_for("console.dead_letters"), "letter_replayed")


@console.post("/dead-letters/<message_id>/discard")
@shown_to(Scope.OPS)
def discard_letter(message_id: str) -> Any:
    """Thrown away for good."""
    desk.discard(services().engine, web_of_app().queues.redis, message_id)
    return done(url_for("console.dead_letters"), "letter_discarded")


@console.get("/jobs")
@shown_to(Scope.OPS)
def jobs() -> Any:
    """The table: when each ran last, and runs next."""
    return render("jobs.html", jobs=read_jobs(services()), allotted=allotted_id())


@console.post("/jobs/<name>/run")
@shown_to(Scope.OPS)
def run_job(name: str) -> Any:
    """An extra run, now: what is due stays due. Sent twice it is one run."""
    run_now(services(), name, taken_id(), principal().key_id)
    return done(url_for("console.jobs"), "job_sent")
