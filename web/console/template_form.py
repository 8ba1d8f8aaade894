"""The form of a template: read into the body that the API takes, and filled in from a template."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from coupon_workers.templates.currency import EXPONENTS
from coupon_workers.templates.template import TemplateFields
from coupon_workers.templates.validity import FixedValidity
from web.console import field_reading as read
from web.console.form import Form
from web.console.show import told_zone

ALIASES = {
    "percent_off": "percent",
    "pool": "pool_budget",
    "pool.min": "pool_min",
    "pool.max": "pool_max",
    "pool.budget": "pool_budget",
    "validity": "validity_mode",
    "validity.days": "validity_days",
    "validity.start_after_days": "validity_after",
    "validity.from": "validity_from",
    "validity.to": "validity_to",
    "scope.products.include": "products_in",
    "scope.products.exclude": "products_out",
    "scope.categories.include": "categories_in",
    "scope.categories.exclude": "categories_out",
    "scope.channels": "channels",
    "scope.user_tags": "user_tags",
    "stacking.group": "group",
    "stacking.priority": "priority",
    "refund.grace_days": "grace_days",
}
"""Fields of the body, and those of the form at which their errors are told."""

DEFAULTS = {
    "type": "amount_off",
    "currency": "CNY",
    "pool_distribution": "uniform",
    "per_user_limit": "1",
    "validity_mode": "relative",
    "validity_days": "7",
    "until_end_of_day": "on",
    "timezone": "Asia/Shanghai",
    "priority": "100",
    "refund_return": "full_only",
    "refund_threshold": "keep",
    "refund_expired": "expire",
    "grace_days": "0",
    "notify": "on",
}


def new_form(now: datetime) -> Form:
    """What most templates have; in the reader's zone, claiming from its publishing on, for a week of whole days."""
    zone = told_zone() or DEFAULTS["timezone"]
    start = now.astimezone(ZoneInfo(zone)).replace(second=0, microsecond=0)
    end = start.replace(hour=0, minute=0) + timedelta(days=8)
    window = {"claim_start": read.wall_clock(start, zone), "claim_end": read.wall_clock(end, zone)}
    return Form(DEFAULTS | window | {"timezone": zone}, ALIASES)


def body_of(form: Form) -> dict[str, Any]:
    """The body; what cannot be read is left out, and its error told to the form."""
    fields = _Fields(form)
    kind, currency, zone = form["type"], form["currency"], form["timezone"]
    body: dict[str, Any] = {
        "name": form["name"],
        "type": kind,
        "currency": currency,
        "timezone": zone,
        "threshold": fields.taken("threshold", lambda text: read.money(text, currency)) or 0,
        "total_quantity": fields.taken("total_quantity", read.number),
        "per_user_limit": fields.taken("per_user_limit", read.number),
        "per_user_daily_limit": fields.taken("per_user_daily_limit", read.number),
        "claim_start": fields.taken("claim_start", lambda text: read.moment(text, zone)),
        "claim_end": fields.taken("claim_end", lambda text: read.moment(text, zone)),
        "validity": _validity(form, fields),
        **_value(form, fields),
        **_terms(form, fields),
        "transferable": bool(form["transferable"]),
        "restock_on_revoke": bool(form["restock_on_revoke"]),
        "notify": bool(form["notify"]),
        "channels_claim": read.words(form["channels_claim"]),
        "approval_required": True if form["approval_required"] else None,
        "risk_policy": form["risk_policy"] or None,
    }
    if form["template_no"]:
        body["template_no"] = form["template_no"]
    return {name: value for name, value in body.items() if name not in fields.unread}


class _Fields:
    """Reads fields one by one; what cannot be read is noted with the form."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self.unread: set[str] = set()

    def taken(self, name: str, reader: Callable[[str], Any]) -> Any:
        try:
            return reader(self._form[name])
        except read.FieldError as error:
            self._form.add_errors([(name, str(error))])
            self.unread.add(name)
            return None


def _value(form: Form, fields: _Fields) -> dict[str, Any]:
    """What a coupon is worth; of other types' fields nothing, whatever was typed before the type was changed."""
    currency = form["currency"]

    def amount(name: str) -> Any:
        return fields.taken(name, lambda text: read.money(text, currency))

    value: dict[str, Any] = {"amount": None, "percent_off": None, "max_discount": None, "pool": None}
    match form["type"]:
        case "percent_off":
            value |= {"percent_off": fields.taken("percent", read.percent), "max_discount": amount("max_discount")}
        case "random_amount":
            value["pool"] = {name: amount(f"pool_{name}") for name in ("min", "max", "budget")}
            value["pool"]["distribution"] = form["pool_distribution"] or "uniform"
            if form["pool_tiers"]:
                value["pool"]["tiers"] = json.loads(form["pool_tiers"])
        case _:
            value["amount"] = amount("amount")
    return value


def _validity(form: Form, fields: _Fields) -> dict[str, Any]:
    to_end_of_day = bool(form["until_end_of_day"])
    if form["validity_mode"] == "fixed":
        ends = {
            name: fields.taken(f"validity_{name}", lambda text: read.moment(text, form["timezone"]))
            for name in ("from", "to")
        }
        return {"mode": "fixed", **ends, "until_end_of_day": to_end_of_day}
    return {
        "mode": "relative",
        "days": fields.taken("validity_days", read.number),
        "start_after_days": fields.taken("validity_after", read.number) or 0,
        "until_end_of_day": to_end_of_day,
    }


def _terms(form: Form, fields: _Fields) -> dict[str, Any]:
    priority = fields.taken("priority", read.number)
    return {
        "scope": {
            "products": {"include": read.words(form["products_in"]), "exclude": read.words(form["products_out"])},
            "categories": {"include": read.words(form["categories_in"]), "exclude": read.words(form["categories_out"])},
            "channels": read.words(form["channels"]),
            "user_tags": read.words(form["user_tags"]),
        },
        "stacking": {
            "exclusive": bool(form["exclusive"]),
            "group": form["group"] or None,
            "priority": 100 if priority is None else priority,
        },
        "refund": {
            "return": form["refund_return"] or "full_only",
            "threshold": form["refund_threshold"] or "keep",
            "expired": form["refund_expired"] or "expire",
            "grace_days": fields.taken("grace_days", read.number) or 0,
        },
    }


def form_of(template: TemplateFields) -> Form:
    """The form as it would have been filled in for ``template``."""
    decimals = EXPONENTS.get(template.currency, 2)
    pool, scope, stacking, refund = template.pool, template.scope, template.stacking, template.refund

    def text(value: int | None) -> str:
        return "" if value is None else str(value)

    def money(value: int | None) -> str:
        return read.unscaled(value, decimals)

    values = {
        "name": template.name,
        "template_no": template.template_no or "",
        "type": template.type,
        "currency": template.currency,
        "amount": money(template.amount),
        "percent": read.unscaled(template.percent_off, 2),
        "max_discount": money(template.max_discount),
        "threshold": money(template.threshold or None),
        "pool_min": money(pool.min) if pool else "",
        "pool_max": money(pool.max) if pool else "",
        "pool_budget": money(pool.budget) if pool else "",
        "pool_distribution": pool.distribution if pool else "uniform",
        "pool_tiers": json.dumps([tier.model_dump() for tier in pool.tiers]) if pool and pool.tiers else "",
        "total_quantity": text(template.total_quantity),
        "per_user_limit": text(template.per_user_limit),
        "per_user_daily_limit": text(template.per_user_daily_limit),
        "products_in": ", ".join(scope.products.include),
        "products_out": ", ".join(scope.products.exclude),
        "categories_in": ", ".join(scope.categories.include),
        "categories_out": ", ".join(scope.categories.exclude),
        "channels": ", ".join(scope.channels),
        "user_tags": ", ".join(scope.user_tags),
        "group": stacking.group or "",
        "priority": text(stacking.priority),
        "refund_return": refund.return_,
        "refund_threshold": refund.threshold,
        "refund_expired": refund.expired,
        "grace_days": text(refund.grace_days),
        "channels_claim": ", ".join(template.channels_claim),
        "risk_policy": template.risk_policy or "",
    }
    return Form(values | _times(template) | _switches(template), ALIASES)


def _times(template: TemplateFields) -> dict[str, str]:
    zone, validity = template.timezone, template.validity
    times = {
        "timezone": zone,
        "claim_start": read.wall_clock(template.claim_start, zone),
        "claim_end": read.wall_clock(template.claim_end, zone),
        "validity_mode": validity.mode,
    }
    if isinstance(validity, FixedValidity):
        return times | {
            "validity_from": read.wall_clock(validity.from_, zone),
            "validity_to": read.wall_clock(validity.to, zone),
        }
    return times | {"validity_days": str(validity.days), "validity_after": str(validity.start_after_days)}


def _switches(template: TemplateFields) -> dict[str, str]:
    switches = {
        "until_end_of_day": template.validity.until_end_of_day,
        "exclusive": template.stacking.exclusive,
        "transferable": template.transferable,
        "restock_on_revoke": template.restock_on_revoke,
        "notify": template.notify,
        "approval_required": template.approval_required,
    }
    return {name: "on" if value else "" for name, value in switches.items()}
