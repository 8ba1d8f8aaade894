"""Batches of redeem codes, newest first, and what became of a code that somebody reads out."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from coupon_workers.access.principal import Scope
from coupon_workers.codes import code_batch_reading as reading
from coupon_workers.codes.code_batch import CodeBatchStatus
from coupon_workers.codes.code_lookup import CodeAnswer, look_up_code
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.templates.template_name import read_names
from coupon_workers.templates.whole_body import errors_of
from web.codes_model import LookupBody
from web.console.asked_word import asked_word
from web.console.blueprint import console
from web.console.form import Form, sent_form
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.rendering import render
from web.console.word import reason_of
from web.context import services


@console.get("/code-batches")
@shown_to(Scope.ADMIN)
def code_batches() -> Any:
    """What there is, of a status if one is asked for."""
    status = asked_word(CodeBatchStatus, "status")
    found = reading.read_page(services(), limit=PAGE_SIZE + 1, before=page_before(), status=status)
    listing = Listing(found, lambda batch: [int(batch.code_batch_id)])
    names = read_names(services(), [batch.template_id for batch in listing.items])
    return render("code_batches.html", listing=listing, names=names, status=status, statuses=list(CodeBatchStatus))


@console.get("/codes/lookup")
@shown_to(Scope.ADMIN)
def code_lookup() -> Any:
    """Where a code is typed in."""
    return _lookup(Form({}), None)


@console.post("/codes/lookup")
@shown_to(Scope.ADMIN)
def look_up() -> Any:
    """What became of it. Sent as a form, so that no code stands in an address."""
    form = sent_form()
    try:
        found = look_up_code(services(), LookupBody(code=form["code"]).code)
    except ValidationError as error:
        form.add_errors(errors_of(error))
    except (Conflict, NotFound) as error:
        form.add_errors([("code", reason_of(error))])
    else:
        return _lookup(form, found)
    return _lookup(form, None, 422)


def _lookup(form: Form, found: CodeAnswer | None, http_status: int = 200) -> Any:
    names = read_names(services(), [found.template_id]) if found else {}
    return render("code_lookup.html", http_status, form=form, found=found, names=names)
