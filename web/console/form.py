"""A form as it was filled in, with what is wrong with it: shown again, nothing of it is lost."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping

from flask import g, request

from web.console.field_word import field_word
from web.console.language import gettext
from web.context import services
from web.problem import ProblemError


class Form:
    """``form["name"]`` is the field's text, empty where it was left out; ``errors`` are messages by field.

    ``aliases`` names the form's fields after which errors are told otherwise: ``{"validity.days": "validity_days"}``.
    """

    def __init__(self, values: Mapping[str, str], aliases: Mapping[str, str] | None = None) -> None:
        self.values = values
        self.errors: dict[str, list[str]] = {}
        self._aliases = aliases or {}

    @property
    def names(self) -> frozenset[str]:
        """The fields that there are."""
        return frozenset(self.values)

    @property
    def faults(self) -> dict[str, list[str]]:
        """The errors in the order in which the form has its fields; those of no field of it come last."""
        places = {name: place for place, name in enumerate(self.values)}
        return dict(sorted(self.errors.items(), key=lambda error: places.get(error[0], len(places))))

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    def add_errors(self, errors: Iterable[tuple[str, str]]) -> None:
        """What the core says is wrong, at the form's own fields. A field about which something was said keeps that:
        of what could not be read the core only knows that it is not there."""
        said = set(self.errors)
        for field, message in errors:
            own, told = self._own(field), field_word(message)
            if own not in said and told not in self.errors.setdefault(own, []):
                self.errors[own].append(told)

    def _own(self, field: str) -> str:
        """The form's field for ``validity.days``, or for ``scope.channels.0``, an item of a list."""
        while field not in self._aliases and "." in field and field not in self.values:
            field = field.rpartition(".")[0]
        return self._aliases.get(field, field)


def sent_form(aliases: Mapping[str, str] | None = None) -> Form:
    """The form of this request."""
    return Form({name: value.strip() for name, value in request.form.items()}, aliases)


def allotted_id() -> str:
    """An identity for what a form will make, to be carried in it: sent twice, it makes one thing. Sealed for this
    session, so that nobody makes up his own."""
    text = str(services().next_id(0))
    return f"{text}.{_seal(text)}"


def taken_id(values: Mapping[str, str] | None = None) -> int:
    """The identity in this request's form, or in ``values`` of one with a file. Raises ``ProblemError`` 403 for one
    that this session was not given."""
    text, _, seal = (request.form if values is None else values).get("allotted", "").partition(".")
    if not hmac.compare_digest(seal.encode(), _seal(text).encode()):
        raise ProblemError(403, "STALE_FORM", gettext("This page is from an earlier session. Load it again."))
    return int(text)


def _seal(text: str) -> str:
    return hmac.new(g.visitor.form_token.encode(), text.encode(), "sha256").hexdigest()[:32]


def reason() -> str | None:
    """The reason that was given with a confirmation; None for an empty one."""
    return request.form.get("reason", "").strip()[:500] or None
