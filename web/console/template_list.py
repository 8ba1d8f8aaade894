"""Templates, newest first."""

from __future__ import annotations

from typing import Any

from coupon_workers.access.principal import Scope
from coupon_workers.templates import template_reading as reading
from coupon_workers.templates.template_status import TemplateStatus
from web.console.asked_word import asked_word
from web.console.blueprint import console
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.rendering import render
from web.context import services


@console.get("/templates")
@shown_to(Scope.ADMIN)
def templates() -> Any:
    """What there is, of a status if one is asked for, with its stock at this moment."""
    status = asked_word(TemplateStatus, "status")
    found = reading.read_page(services(), limit=PAGE_SIZE + 1, before=page_before(), status=status)
    listing = Listing(found, lambda template: [int(template.template_id)])
    return render("templates.html", listing=listing, status=status, statuses=list(TemplateStatus))
