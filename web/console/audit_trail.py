"""The audit log: who did what to what, when, with what has changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from flask import request

from coupon_workers.access.principal import Scope
from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.reading import AuditEntry, AuditFilter, read_audit_log
from web.console.audit_word import action_word
from web.console.blueprint import console
from web.console.field_reading import MOMENT, moment
from web.console.form import Form
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.rendering import render
from web.console.show import viewer_zone
from web.context import services

FIELDS = ("key_id", "action", "subject", "since", "until")


class Change(NamedTuple):
    """A field of what was done to, before and after; None where it was not."""

    field: str
    before: Any
    after: Any


@console.get("/audit")
@shown_to(Scope.ADMIN)
def audit() -> Any:
    """Newest first; the fields of the form narrow it down, times are the reader's own."""
    form = Form({name: request.args.get(name, "").strip() for name in FIELDS})
    wanted, before = _filter(form), page_before()
    found: list[AuditEntry] = []
    if not form.errors:
        found = read_audit_log(services(), wanted, limit=PAGE_SIZE + 1, before=before)
    listing = Listing(found, lambda entry: [int(entry.audit_id)])
    is_narrow = any(form[name] for name in FIELDS)
    return render("audit.html", listing=listing, form=form, is_narrow=is_narrow, actions=_actions(), changes=changes)


def _actions() -> list[tuple[str, str]]:
    return [("", gettext("anything")), *((action.value, action_word(action)) for action in AuditAction)]


def changes(entry: AuditEntry) -> list[Change]:
    """What differs between before and after, in the order in which it stands there."""
    before, after = entry.before or {}, entry.after or {}
    pairs = [Change(field, before.get(field), after.get(field)) for field in dict.fromkeys([*before, *after])]
    return [pair for pair in pairs if pair.before != pair.after]


def _filter(form: Form) -> AuditFilter:
    action = AuditAction(form["action"]) if form["action"] in set(AuditAction) else None
    return AuditFilter(
        subject=form["subject"] or None,
        action=action,
        operator=form["key_id"] or None,
        since=_instant(form, "since"),
        until=_instant(form, "until"),
    )


def _instant(form: Form, name: str) -> datetime | None:
    try:
        text = moment(form[name], viewer_zone())
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        form.add_errors([(name, MOMENT)])
        return None
