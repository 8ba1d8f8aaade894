"""API keys: listed, made and shown once, revoked."""

from __future__ import annotations

from typing import Any

from flask import request, url_for

from coupon_workers.access.api_key import NewKey, create_key, key_id_from, list_keys, revoke_key
from coupon_workers.access.principal import Scope
from coupon_workers.errors import InvalidInput
from web.console.blueprint import console
from web.console.form import Form, allotted_id, sent_form, taken_id
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing, cursor_of
from web.console.notice import done
from web.console.rendering import render
from web.context import principal, services, web_of_app
from web.page import cursor_instant


@console.get("/keys")
@shown_to(Scope.ADMIN)
def keys() -> Any:
    """Newest first, the revoked ones too."""
    position = cursor_of(str, str)
    before = (cursor_instant(position[0]), position[1]) if position else None
    found = list_keys(services().engine, limit=PAGE_SIZE + 1, before=before)
    listing = Listing(found, lambda key: [key.created_at.isoformat(), key.key_id])
    return render("keys.html", listing=listing, me=principal().key_id)


@console.get("/keys/new")
@shown_to(Scope.ADMIN)
def new_key() -> Any:
    """The form."""
    return _form(Form({}))


@console.post("/keys/new")
@shown_to(Scope.ADMIN)
def make_key() -> Any:
    """The key is shown by this answer and never again: sent twice, the form makes one key."""
    form, scopes = sent_form(), request.form.getlist("scope")
    key_id = key_id_from(taken_id())
    try:
        made = create_key(
            services().engine, name=form["name"], scopes=scopes, signed=bool(form["signed"]), key_id=key_id
        )
    except InvalidInput as error:
        form.add_errors(error.errors)
        return _form(form, scopes, 422)
    return _shown_once(made)


@console.post("/keys/<key_id>/revoke")
@shown_to(Scope.ADMIN)
def end_key(key_id: str) -> Any:
    """It opens nothing any more: here at once, in other processes within five seconds."""
    web_of_app().keys.forget(revoke_key(services().engine, key_id).key_id)
    return done(url_for("console.keys"), "key_revoked")


def _form(form: Form, scopes: list[str] | None = None, status: int = 200) -> Any:
    return render("key_form.html", status, form=form, chosen=scopes or [], scopes=list(Scope), allotted=allotted_id())


def _shown_once(made: NewKey) -> Any:
    return render("key_made.html", 201, key=made.key, record=made.record)
