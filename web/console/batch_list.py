"""Campaign batches, newest first."""

from __future__ import annotations

from typing import Any

from coupon_workers.access.principal import Scope
from coupon_workers.campaigns import batch_reading as reading
from coupon_workers.campaigns.batch import BatchStatus
from coupon_workers.templates.template_name import read_names
from web.console.asked_word import asked_word
from web.console.blueprint import console
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.rendering import render
from web.context import services


@console.get("/batches")
@shown_to(Scope.ADMIN)
def batches() -> Any:
    """What there is, of a status if one is asked for."""
    status = asked_word(BatchStatus, "status")
    found = reading.read_page(services(), limit=PAGE_SIZE + 1, before=page_before(), status=status)
    listing = Listing(found, lambda batch: [int(batch.batch_no)])
    names = read_names(services(), [batch.template_id for batch in listing.items])
    return render("batches.html", listing=listing, names=names, status=status, statuses=list(BatchStatus))
