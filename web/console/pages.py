"""Every view of the console: importing this module gives the blueprint all of them."""

from __future__ import annotations

from web.console import (
    approval_inbox,
    audit_trail,
    batch_form,
    batch_list,
    batch_page,
    code_batch_form,
    code_batch_list,
    code_batch_page,
    daily_closes,
    finding_inbox,
    key_cabinet,
    ledger_book,
    live,
    login,
    queue_desk,
    reconciliation_desk,
    template_list,
    template_page,
    template_wizard,
    user_search,
)
from web.console.blueprint import console

__all__ = [
    "approval_inbox",
    "audit_trail",
    "batch_form",
    "batch_list",
    "batch_page",
    "code_batch_form",
    "code_batch_list",
    "code_batch_page",
    "console",
    "daily_closes",
    "finding_inbox",
    "key_cabinet",
    "ledger_book",
    "live",
    "login",
    "queue_desk",
    "reconciliation_desk",
    "template_list",
    "template_page",
    "template_wizard",
    "user_search",
]
