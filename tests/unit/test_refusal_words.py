"""What the core refuses has words for people: its own sentence is English, and for programmers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from coupon_workers.access.principal import Scope
from web.app import described_application
from web.auth import scopes_of
from web.codes_api import post_exchange
from web.console.word import REASONS
from web.problem_code import problems_of

TOLD_OTHERWISE = {
    "BELOW_DRAWN": "at its field, with how many are drawn",
    "DELIVERY_NOT_FOUND": "webhooks have no page",
    "REVOCATION_NOT_FOUND": "recalls of whole templates have none",
    "SCORE_NOT_FOUND": "scores have none",
    "WEBHOOK_DISABLED": "webhooks have no page",
    "WEBHOOK_NOT_FOUND": "likewise",
}


def _refusals(views: Iterable[Callable[..., Any]]) -> set[str]:
    return {code for view in views for status, code in problems_of(view) if status in (404, 409, 410)}


def test_every_refusal_that_an_operator_may_meet_has_its_words() -> None:
    """Of all that can be done over HTTP the console does nearly everything."""
    views = described_application().view_functions.values()

    operated = [view for view in views if {Scope.ADMIN, Scope.OPS} & (scopes_of(view) or set())]

    assert TOLD_OTHERWISE.keys() == _refusals(operated) - REASONS.keys()


def test_every_refusal_of_a_code_has_its_words() -> None:
    """At the shop, where one is typed in."""
    assert set() == _refusals([post_exchange]) - REASONS.keys()
