"""Every view of the console: importing this module gives the blueprint all of them."""

from __future__ import annotations

from web.console import approval_inbox, live, login, template_list, template_page, template_wizard
from web.console.blueprint import console

__all__ = ["approval_inbox", "console", "live", "login", "template_list", "template_page", "template_wizard"]
