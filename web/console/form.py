"""A form as it was filled in, with what is wrong with it: shown again, nothing of it is lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flask import request

from web.console.language import gettext


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

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    def add_errors(self, errors: Iterable[tuple[str, str]]) -> None:
        """What the core says is wrong, at the form's own fields."""
        for field, message in errors:
            self.errors.setdefault(self._aliases.get(field, field), []).append(gettext(message))


def sent_form(aliases: Mapping[str, str] | None = None) -> Form:
    """The form of this request."""
    return Form({name: value.strip() for name, value in request.form.items()}, aliases)


def reason() -> str | None:
    """The reason that was given with a confirmation; None for an empty one."""
    return request.form.get("reason", "").strip()[:500] or None
