"""Every page of the console with something to see on it: an example is a function that makes it, and says its path."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.http_shop import Shop

Example = Callable[[Shop], str]


def _login(shop: Shop) -> str:
    return "/login"


def _templates(shop: Shop) -> str:
    shop.desk.open(name="满100减20 双十一")
    shop.desk.open(name="15 % off", type="percent_off", amount=None, percent_off=1500, max_discount=5000)
    shop.desk.draft(name="Five off", type="cash", amount=500, threshold=0)
    return "/templates"


def _approvals(shop: Shop) -> str:
    shop.desk.open(name="满100减20 双十一", approval_required=True)
    return "/approvals?state=all"


EXAMPLES: dict[str, Example] = {
    "login": _login,
    "templates": _templates,
    "approvals": _approvals,
}
"""By the name of the view. A page that is not here fails the tests."""

LED_ON = {"start": "leads to the first page", "nowhere": "is no page", "static_file": "a file"}
"""Views that show nothing of their own, with the reason."""
