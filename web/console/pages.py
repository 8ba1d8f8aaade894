"""Every view of the console: importing this module gives the blueprint all of them."""

from __future__ import annotations

from web.console import (
    approval_inbox,
    batch_form,
    batch_list,
    batch_page,
    live,
    login,
    template_list,
    template_page,
    template_wizard,
)
from web.console.blueprint import console

__all__ = [
    "approval_inbox",
    "batch_form",
    "batch_list",
    "batch_page",
    "console",
    "live",
    "login",
    "template_list",
    "template_page",
    "template_wizard",
]
