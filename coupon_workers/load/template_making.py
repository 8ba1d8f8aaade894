"""Templates made and published over HTTP, many at a time, and found again by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from coupon_workers.load.admin_call import AdminCall
from coupon_workers.load.admin_client import AdminClient

Body = Mapping[str, Any]
Heard = Callable[[], None]


def _nothing() -> None:
    pass


def _untold(what: str, templates: int) -> Heard:
    return _nothing


def open_templates(
    client: AdminClient, bodies: Sequence[Body], *, run: str, planned: Callable[[str, int], Heard] = _untold
) -> list[str]:
    """Make the templates that do not exist yet, publish the drafts among all, and return their ids in order.

    Each body has a ``template_no``, by which an earlier run's template is found again. ``run`` names this run in each
    ``Idempotency-Key``. ``planned`` is told of how many templates are made, then published, if any, and returns what is
    called after each. Raises ``UnexpectedAnswer``.
    """
    numbers = [str(body["template_no"]) for body in bodies]
    known = _known(client, frozenset(numbers))
    missing = [body for body in bodies if body["template_no"] not in known]
    heard = planned("making templates", len(missing)) if missing else None
    made = client.ask_all([_creation(body, run) for body in missing], heard)
    known |= {template["template_no"]: template for template in made}
    drafts = [known[number]["template_id"] for number in numbers if known[number]["status"] == "draft"]
    heard = planned("publishing templates", len(drafts)) if drafts else None
    client.ask_all([_publication(template_id, run) for template_id in drafts], heard)
    return [str(known[number]["template_id"]) for number in numbers]


def _creation(body: Body, run: str) -> AdminCall:
    return AdminCall("POST", "/v1/templates", body, f"{run}-{body['template_no']}")


def _publication(template_id: str, run: str) -> AdminCall:
    return AdminCall("POST", f"/v1/templates/{template_id}/publish", None, f"{run}-publish-{template_id}")


def _known(client: AdminClient, wanted: frozenset[str]) -> dict[str, Any]:
    """Those of the wanted templates that exist, by ``template_no``."""
    found: dict[str, Any] = {}
    target = "/v1/templates?limit=200"
    while True:
        page = client.ask(AdminCall("GET", target))
        found |= {item["template_no"]: item for item in page["items"] if item["template_no"] in wanted}
        if page["next_cursor"] is None or len(found) == len(wanted):
            return found
        target = f"/v1/templates?limit=200&cursor={quote(page['next_cursor'], safe='')}"
