"""Rows of ``coupon_template`` for tests: a sensible one, with whatever a test changes in it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from sqlalchemy import Engine, Table, insert, select, update

from coupon_workers.runtime.clock import utc_now
from coupon_workers.schema import CouponTemplate
from coupon_workers.templates.terms import RefundRule, StackingRule, TemplateScope

TEMPLATE_ID = 7_001

_table = cast(Table, CouponTemplate.__table__)


def insert_template(engine: Engine, **changed: Any) -> int:
    """Insert a published template, open from an hour ago until tomorrow; its id.

    Ten units of 20.00 CNY without limits per user, unless ``changed`` (columns by name) says otherwise.
    """
    template_id = changed.pop("template_id", TEMPLATE_ID)
    now = utc_now()
    columns: dict[str, Any] = {
        "template_id": template_id,
        "template_no": f"TPL-{template_id}",
        "name": "Double Eleven 100-20",
        "type": "amount_off",
        "currency": "CNY",
        "amount_minor": 2_000,
        "threshold_minor": 10_000,
        "total_quantity": 10,
        "per_user_limit": None,
        "per_user_daily_limit": None,
        "claim_start": now - timedelta(hours=1),
        "claim_end": now + timedelta(days=1),
        "validity": {"mode": "relative", "days": 7, "start_after_days": 0},
        "timezone": "Asia/Shanghai",
        "scope": TemplateScope().model_dump(mode="json"),
        "stacking": StackingRule().model_dump(mode="json"),
        "refund": RefundRule().model_dump(mode="json", by_alias=True),
        "transferable": False,
        "restock_on_revoke": False,
        "notify": True,
        "channels_claim": [],
        "status": "active",
    }
    with engine.begin() as connection:
        connection.execute(insert(_table).values(columns | changed))
    return int(template_id)


def change_template(engine: Engine, template_id: int, **changed: Any) -> None:
    """Change columns as the next version, in the database alone: the gate is not told."""
    with engine.begin() as connection:
        connection.execute(
            update(_table)
            .where(_table.c.template_id == template_id)
            .values(changed | {"version": _table.c.version + 1})
        )


def read_template(engine: Engine, template_id: int) -> dict[str, Any]:
    """The row."""
    with engine.connect() as connection:
        row = connection.execute(select(_table).where(_table.c.template_id == template_id)).mappings().one()
    return dict(row)
