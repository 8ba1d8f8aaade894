"""A new lottery: its prizes' units set aside and its rows written in one transaction, then its gate warmed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.campaigns.batch_control import tell_gate as tell_template_gate
from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.lottery.lottery import find_lottery
from coupon_workers.lottery.lottery_preheat import preheat_if_redis_answers
from coupon_workers.lottery.odds import weights_problem
from coupon_workers.lottery.prize_units import check_open, is_above_budget, reserve_units
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.schema import Lottery, Prize
from coupon_workers.templates.template_row import Row
from coupon_workers.templates.template_rule import MAX_CLAIM_WINDOW
from coupon_workers.templates.template_store import lock_template


@dataclass(frozen=True, slots=True)
class NewPrize:
    """A prize: ``weight`` draws in a million win it. ``template_id`` None: no coupon of ours."""

    name: str
    weight: int
    stock: int
    template_id: int | None = None


@dataclass(frozen=True, slots=True)
class NewLottery:
    """What is asked for. Limits None: no limit. ``timezone`` is that of the daily limit."""

    lottery_id: int
    name: str
    start: datetime
    end: datetime
    prizes: tuple[NewPrize, ...]
    timezone: str
    per_user_limit: int | None = None
    per_user_daily_limit: int | None = None

    @property
    def units(self) -> dict[int, int]:
        """What it sets aside, by template, in order of their numbers."""
        units: Counter[int] = Counter()
        for prize in self.prizes:
            if prize.template_id is not None:
                units[prize.template_id] += prize.stock
        return dict(sorted(units.items()))


def create_lottery(services: Services, lottery: NewLottery, operator: str) -> None:
    """Set a unit aside for each coupon to be won, store the lottery, and warm its gate.

    It waits for a second person where its coupons may cost more than the budget of their currency. Safe to run again: a
    lottery of this identity is left as it stands. Raises ``InvalidInput`` for weights that do not sum to a million, a
    time that is not within a template's, or one of more than ten years; ``NotFound`` ``TEMPLATE_NOT_FOUND``;
    ``Conflict`` with ``template_id``: ``TYPE_NOT_OFFERED``, ``TEMPLATE_NOT_ACTIVE`` with ``current_status``,
    ``NOT_ENOUGH_STOCK`` with ``available``; ``StoreUnavailable``. Nothing is written then.
    """
    with transaction(services.engine) as connection:
        now = services.clock()
        if find_lottery(connection, lottery.lottery_id) is None:
            _check(lottery, now)
            # Held in order of their numbers: nobody who holds two can wait for us while we wait for him.
            templates = {template_id: lock_template(connection, template_id) for template_id in lottery.units}
            if find_lottery(connection, lottery.lottery_id) is None:
                _store(services, connection, lottery, templates, operator, now)
    for template_id in lottery.units:
        tell_template_gate(services, template_id)
    preheat_if_redis_answers(services, lottery.lottery_id)


def _check(lottery: NewLottery, now: datetime) -> None:
    errors = []
    if (problem := weights_problem([prize.weight for prize in lottery.prizes])) is not None:
        errors.append(("prizes", problem))
    if lottery.end <= lottery.start:
        errors.append(("end", "must lie after start"))
    elif lottery.end <= now:
        errors.append(("end", "must lie in the future"))
    elif lottery.end - lottery.start > MAX_CLAIM_WINDOW:
        errors.append(("end", "must not come later than ten years after start"))
    if errors:
        raise InvalidInput(errors)


def _store(
    services: Services,
    connection: Connection,
    lottery: NewLottery,
    templates: Mapping[int, Row],
    operator: str,
    now: datetime,
) -> None:
    for template_id, units in lottery.units.items():
        _check_template(templates[template_id], lottery, now)
        reserve_units(services, connection, template_id, units, now)
    status = "pending_approval" if is_above_budget(services, templates, lottery.units) else "open"
    row = _columns(lottery) | {"status": status, "created_by": operator, "created_at": now, "updated_at": now}
    if connection.execute(insert(Lottery).values(row).on_conflict_do_nothing()).rowcount != 1:
        return  # without a template nobody is held, and the same request was quicker
    connection.execute(insert(Prize), _prizes(lottery))
    facts = {"name": lottery.name, "status": status, "start": lottery.start, "end": lottery.end}
    prizes = [
        {"name": prize.name, "weight": prize.weight, "stock": prize.stock, "template_id": _text(prize.template_id)}
        for prize in lottery.prizes
    ]
    limits = {"per_user_limit": lottery.per_user_limit, "per_user_daily_limit": lottery.per_user_daily_limit}
    after = facts | limits | {"prizes": prizes}
    record(connection, AuditAction.LOTTERY_CREATE, f"lottery:{lottery.lottery_id}", after=after)


def _text(template_id: int | None) -> str | None:
    return None if template_id is None else str(template_id)


def _check_template(template: Row, lottery: NewLottery, now: datetime) -> None:
    template_id = str(template["template_id"])
    if template["type"] == "random_amount":
        detail = "random amounts cannot be prizes yet"
        raise Conflict("TYPE_NOT_OFFERED", detail, type=template["type"], template_id=template_id)
    check_open(template, now)
    span = f"of template {template_id}, {rfc3339(template['claim_start'])} to {rfc3339(template['claim_end'])}"
    if lottery.start < template["claim_start"]:
        raise InvalidInput([("start", f"must not lie before the time {span}")])
    if lottery.end > template["claim_end"]:
        raise InvalidInput([("end", f"must not lie after the time {span}")])


def _columns(lottery: NewLottery) -> dict[str, Any]:
    return {
        "lottery_id": lottery.lottery_id,
        "name": lottery.name,
        "start_at": lottery.start,
        "end_at": lottery.end,
        "timezone": lottery.timezone,
        "per_user_limit": lottery.per_user_limit,
        "per_user_daily_limit": lottery.per_user_daily_limit,
    }


def _prizes(lottery: NewLottery) -> list[dict[str, Any]]:
    return [
        {
            "lottery_id": lottery.lottery_id,
            "prize_no": prize_no,
            "name": prize.name,
            "weight": prize.weight,
            "template_id": prize.template_id,
            "stock": prize.stock,
            "left_quantity": prize.stock,
        }
        for prize_no, prize in enumerate(lottery.prizes, start=1)
    ]
