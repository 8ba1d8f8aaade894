"""One batch of codes: generated, fetched once, revoked."""

from __future__ import annotations

from typing import Any

from flask import Response, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.codes import code_batch_reading as reading
from coupon_workers.codes.code_batch import ALIVE, CodeBatchStatus, ExportState
from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.codes.code_batch_reading import CodeBatchAnswer
from coupon_workers.codes.code_export import fetch_codes
from coupon_workers.errors import InvalidInput
from coupon_workers.templates.template_name import read_names
from web.console.blueprint import console
from web.console.form import reason
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.notice import done
from web.console.progress import progress
from web.console.rendering import render
from web.console.show import number, span
from web.context import principal, services
from web.path_id import path_id

UNKNOWN = "CODE_BATCH_NOT_FOUND"


@console.get("/code-batches/<code_batch_id>")
@shown_to(Scope.ADMIN)
def code_batch(code_batch_id: str) -> Any:
    """Everything about it but its codes."""
    found = reading.read_one(services(), path_id(code_batch_id, UNKNOWN))
    return render(
        "code_batch.html",
        batch=found,
        moving=_moving(found),
        names=read_names(services(), [found.template_id]),
        can_fetch=found.status is CodeBatchStatus.DONE and found.export is ExportState.KEPT,
        can_revoke=found.status in ALIVE,
    )


@console.get("/data/code-batches/<code_batch_id>")
@shown_to(Scope.ADMIN)
def code_batch_data(code_batch_id: str) -> dict[str, Any]:
    """What of it moves."""
    return _moving(reading.read_one(services(), path_id(code_batch_id, UNKNOWN)))


@console.post("/code-batches/<code_batch_id>/codes.csv")
@shown_to(Scope.ADMIN)
def fetch_code_batch(code_batch_id: str) -> Response:
    """The codes, once: it is a write, which no browser does by itself or again."""
    number = path_id(code_batch_id, UNKNOWN)
    download = fetch_codes(services(), number, principal().key_id)
    answer = Response(download.pieces, content_type="text/csv; charset=utf-8")
    answer.headers["Content-Length"] = str(download.length)
    answer.headers["Content-Disposition"] = f'attachment; filename="codes-{number}.csv"'
    return answer


@console.post("/code-batches/<code_batch_id>/revoke")
@shown_to(Scope.ADMIN)
def revoke_codes(code_batch_id: str) -> Any:
    """End it, with a reason."""
    number, why = path_id(code_batch_id, UNKNOWN), reason()
    if why is None:
        raise InvalidInput([("reason", gettext("say why"))])
    revoke_code_batch(services(), number, principal().key_id, why)
    return done(url_for("console.code_batch", code_batch_id=number), "codes_revoked")


def _moving(batch: CodeBatchAnswer) -> dict[str, Any]:
    texts = {
        "quantity": number(batch.quantity),
        "percent": f"{batch.percent:g}%",
        "rate": gettext("%s/s") % number(round(batch.codes_per_second)),
        "eta": "—" if batch.eta_seconds is None else span(batch.eta_seconds * 1000),
        "used": number(batch.used),
        "reserved": number(batch.reserved),
    }
    over = batch.status not in ALIVE
    parts = {"generated": batch.generated}
    return progress(batch.status.value, over, batch.quantity, parts, texts, stands=batch.export.value)
