"""The units of templates that prizes keep: more are set aside, or some given back, when the stock of prizes changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, text

from coupon_workers.approval.budget import above_budget, worst_cost_of
from coupon_workers.campaigns.reservation import free_units
from coupon_workers.errors import Conflict
from coupon_workers.lottery.lottery import Row
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_status import TemplateStatus, effective_status
from coupon_workers.templates.template_store import lock_template

RESERVE = text(
    "UPDATE coupon_template SET reserved_quantity = reserved_quantity + :units, version = version + 1,"
    " updated_at = :now WHERE template_id = :template_id"
)
OPEN = frozenset({TemplateStatus.SCHEDULED, TemplateStatus.ACTIVE, TemplateStatus.PAUSED})


def reserve_units(services: Services, connection: Connection, template_id: int, units: int, now: datetime) -> None:
    """Set ``units`` aside of a template that this transaction holds; below 0 they are given back.

    Raises ``Conflict`` ``NOT_ENOUGH_STOCK`` with ``available`` and ``template_id``.
    """
    if units > 0 and units > (available := free_units(services, connection, template_id)):
        detail = f"prizes need {units} units of template {template_id}, and {available} are left"
        raise Conflict("NOT_ENOUGH_STOCK", detail, available=available, template_id=str(template_id))
    connection.execute(RESERVE, {"template_id": template_id, "units": units, "now": now})


def check_open(template: Row, now: datetime) -> None:
    """Raises ``Conflict`` ``TEMPLATE_NOT_ACTIVE`` with ``current_status`` and ``template_id``."""
    status = effective_status(template, now)
    if status not in OPEN:
        detail = f"the template is {status}: prizes are of one that is published and not over"
        evidence = {"current_status": status.value, "template_id": str(template["template_id"])}
        raise Conflict("TEMPLATE_NOT_ACTIVE", detail, **evidence)


def is_above_budget(services: Services, templates: Mapping[int, Row], units: Mapping[int, int]) -> bool:
    """Whether so many coupons of each template may cost more than one person decides on, currency by currency."""
    costs: dict[str, int | None] = {}
    for template_id, count in units.items():
        currency, cost = templates[template_id]["currency"], worst_cost_of(templates[template_id], count)
        before = costs.get(currency, 0)
        costs[currency] = None if cost is None or before is None else before + cost
    return any(above_budget(services.settings, currency, cost) for currency, cost in costs.items())


def move_units(
    services: Services, connection: Connection, lottery: Row, before: Sequence[Row], after: Sequence[Row]
) -> list[int]:
    """Bring what is set aside from the prizes of ``before`` to those of ``after``; the templates that it moved.

    Raises ``Conflict`` ``NOT_ENOUGH_STOCK``, ``TEMPLATE_NOT_ACTIVE``, and ``ABOVE_BUDGET`` where more coupons would
    need a second person: that is asked of new lotteries alone.
    """
    now, were, will_be = services.clock(), _units(before), _units(after)
    # Held in order of their numbers, as everywhere that holds several.
    templates = {template_id: lock_template(connection, template_id) for template_id in sorted(will_be)}
    moved = [template_id for template_id in templates if were[template_id] != will_be[template_id]]
    raised = [template_id for template_id in moved if will_be[template_id] > were[template_id]]
    if raised and is_above_budget(services, templates, will_be):
        raise Conflict("ABOVE_BUDGET", "so many coupons may cost more than the budget: make another lottery")
    for template_id in raised:
        check_open(templates[template_id], now)
    for template_id in moved:
        reserve_units(services, connection, template_id, will_be[template_id] - were[template_id], now)
    return moved


def _units(prizes: Sequence[Row]) -> Counter[int]:
    units: Counter[int] = Counter()
    for prize in prizes:
        if prize["template_id"] is not None:
            units[prize["template_id"]] += prize["stock"]
    return units
