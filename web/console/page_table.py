"""Every page that the navigation leads to, as data. A page shows itself to keys that have one of its scopes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from coupon_workers.access.principal import Scope
from web.console.language import N_

ADMIN, OPS, ORDERS = Scope.ADMIN, Scope.OPS, Scope.ORDERS


@dataclass(frozen=True, slots=True)
class Page:
    """``endpoint`` is the view's name in the console's blueprint; ``title`` and ``group`` are words to translate."""

    endpoint: str
    title: str
    scopes: frozenset[Scope]
    group: str


CAMPAIGNS = N_("Campaigns")
USERS = N_("Users")
MONEY = N_("Money")
RISK = N_("Risk")
OPERATIONS = N_("Operations")
ACCESS = N_("Access")

PAGES = (
    Page("live", N_("Live"), frozenset({ADMIN, OPS}), CAMPAIGNS),
    Page("templates", N_("Templates"), frozenset({ADMIN}), CAMPAIGNS),
    Page("batches", N_("Batches"), frozenset({ADMIN}), CAMPAIGNS),
    Page("code_batches", N_("Redeem codes"), frozenset({ADMIN}), CAMPAIGNS),
    Page("lotteries", N_("Lotteries"), frozenset({ADMIN}), CAMPAIGNS),
    Page("approvals", N_("Approvals"), frozenset({ADMIN}), CAMPAIGNS),
    Page("users", N_("Users"), frozenset({ADMIN}), USERS),
    Page("findings", N_("Findings"), frozenset({ADMIN}), MONEY),
    Page("daily_closes", N_("Daily closes"), frozenset({ADMIN}), MONEY),
    Page("ledger", N_("Ledger"), frozenset({ADMIN}), MONEY),
    Page("reconciliations", N_("Reconciliations"), frozenset({ADMIN}), MONEY),
    Page("order_statements", N_("Order statements"), frozenset({ADMIN, ORDERS}), MONEY),
    Page("risk_reviews", N_("Held claims"), frozenset({ADMIN}), RISK),
    Page("risk_policies", N_("Risk policies"), frozenset({ADMIN}), RISK),
    Page("risk_lists", N_("Lists"), frozenset({ADMIN}), RISK),
    Page("risk_verdicts", N_("Verdicts"), frozenset({ADMIN}), RISK),
    Page("queues", N_("Queues"), frozenset({OPS}), OPERATIONS),
    Page("dead_letters", N_("Dead letters"), frozenset({OPS}), OPERATIONS),
    Page("jobs", N_("Jobs"), frozenset({OPS}), OPERATIONS),
    Page("audit", N_("Audit log"), frozenset({ADMIN}), ACCESS),
    Page("keys", N_("API keys"), frozenset({ADMIN}), ACCESS),
)
"""In the order in which they are shown; pages of a group stand together."""

BY_ENDPOINT = {page.endpoint: page for page in PAGES}


def pages_for(scopes: frozenset[str]) -> list[Page]:
    """The pages that a key of these scopes is shown."""
    return [page for page in PAGES if not page.scopes.isdisjoint(scopes)]


def navigation(scopes: frozenset[str]) -> Iterator[tuple[str, list[Page]]]:
    """Groups with their pages."""
    for group, pages in groupby(pages_for(scopes), key=lambda page: page.group):
        yield group, list(pages)
