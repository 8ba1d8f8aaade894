"""The labels of fields, where what is wrong is told in one list."""

from __future__ import annotations

from web.console.language import N_, gettext

LABELS = {
    "name": N_("Name"),
    "scopes": N_("Scopes"),
    "file": N_("File"),
    "date": N_("Business day"),
    "reason": N_("Reason"),
    "template_id": N_("Template"),
    "key_id": N_("Operator"),
    "since": N_("Not before"),
    "until": N_("Before"),
    "value": N_("Value"),
    "kind": N_("Kind"),
    "total_quantity": N_("Total"),
}
"""Of fields that pages name alike; of the others a page's script puts the label into the list."""


def label_of(name: str) -> str:
    """The field's label; its name where the table does not know it."""
    return gettext(LABELS[name]) if name in LABELS else name
