"""One batch as it goes: how far, how fast, what it costs, and what may be done with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Response, request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.campaigns import batch_control as control
from coupon_workers.campaigns import batch_reading as reading
from coupon_workers.campaigns.batch import OPEN, BatchStatus
from coupon_workers.campaigns.batch_cost import read_cost
from coupon_workers.campaigns.batch_failures import failures_csv
from coupon_workers.campaigns.batch_reading import BatchAnswer
from coupon_workers.errors import NotFound
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_name import read_names
from web.console.blueprint import console
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.notice import done
from web.console.progress import progress
from web.console.rendering import render
from web.console.show import number, span
from web.context import principal, services
from web.path_id import path_id

Act = Callable[[Services, int, str], Any]

ACTS: dict[str, tuple[Act, str]] = {
    "approve": (control.approve_batch, "batch_approved"),
    "pause": (control.pause_batch, "batch_paused"),
    "resume": (control.resume_batch, "batch_resumed"),
    "cancel": (control.cancel_batch, "batch_cancelled"),
}
"""What one press does, and the notice of it."""

MAY = {
    "pause": {BatchStatus.READY, BatchStatus.RUNNING},
    "resume": {BatchStatus.PAUSED},
    "cancel": OPEN,
}


@console.get("/batches/<batch_no>")
@shown_to(Scope.ADMIN)
def batch(batch_no: str) -> Any:
    """Everything about it on one page."""
    number = path_id(batch_no, "BATCH_NOT_FOUND")
    found = reading.read_one(services(), number)
    return render(
        "batch.html",
        batch=found,
        moving=_moving(found),
        cost=read_cost(services(), number),
        names=read_names(services(), [found.template_id]),
        may={name for name, statuses in MAY.items() if found.status in statuses},
        waits=found.status is BatchStatus.READY and found.needs_approval and found.approved_by is None,
        mine=found.created_by == principal().key_id,
    )


@console.get("/data/batches/<batch_no>")
@shown_to(Scope.ADMIN)
def batch_data(batch_no: str) -> dict[str, Any]:
    """What of it moves."""
    return _moving(reading.read_one(services(), path_id(batch_no, "BATCH_NOT_FOUND")))


@console.post("/batches/<batch_no>/act")
@shown_to(Scope.ADMIN)
def act_on_batch(batch_no: str) -> Any:
    """Approve, pause, resume, cancel."""
    number, name = path_id(batch_no, "BATCH_NOT_FOUND"), request.form.get("act", "")
    if name not in ACTS:
        raise NotFound("NOT_FOUND", f"there is no act {name}")
    act, notice = ACTS[name]
    act(services(), number, principal().key_id)
    return done(url_for("console.batch", batch_no=number), notice)


@console.get("/batches/<batch_no>/failures.csv")
@shown_to(Scope.ADMIN)
def batch_failures(batch_no: str) -> Response:
    """The rows that got no coupon, and why."""
    number = path_id(batch_no, "BATCH_NOT_FOUND")
    answer = Response(failures_csv(services(), number), content_type="text/csv; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="batch-{number}-failures.csv"'
    return answer


def _moving(batch: BatchAnswer) -> dict[str, Any]:
    parts = {name: getattr(batch, name) for name in ("issued", "refused", "duplicate", "invalid", "pending")}
    texts = {
        "rows": number(batch.rows),
        "users": number(batch.valid - batch.duplicate),
        "percent": f"{batch.percent:g}%",
        "rate": "—" if batch.rows_per_second is None else gettext("%s/s") % number(round(batch.rows_per_second)),
        "eta": "—" if batch.eta_seconds is None else span(batch.eta_seconds * 1000),
        "shards": f"{number(batch.shards.done)} / {number(batch.shards.total)}",
        "reserved": number(batch.reserved),
    }
    return progress(batch.status.value, batch.status not in OPEN, batch.rows, parts, texts)
