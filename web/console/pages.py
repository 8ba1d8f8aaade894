"""Every view of the console: importing this module gives the blueprint all of them."""

from __future__ import annotations

from web.console import approval_inbox, login, template_list
from web.console.blueprint import console

__all__ = ["approval_inbox", "console", "login", "template_list"]
