"""What a coupon of a template would take off an order: the real engine, before there is any such coupon."""

from __future__ import annotations

from coupon_workers.orders.coupon_rule import rule_of
from coupon_workers.orders.discount import Discounts, apply_coupons
from coupon_workers.orders.order import OrderBody
from coupon_workers.templates.template import TemplateFields
from coupon_workers.templates.template_row import columns_of
from coupon_workers.templates.validity import valid_window

_ONE = 1
"""The identity of the coupon and its template: they are alone, and only compared."""


def sample_discount(template: TemplateFields, order: OrderBody, face_value_minor: int | None = None) -> Discounts:
    """``order`` with one coupon, at the first instant at which a coupon claimed at ``claim_start`` holds.

    ``face_value_minor`` is what a random amount would be; no other type has one.
    """
    columns = columns_of(template) | {"template_id": _ONE}
    valid_from, valid_to = valid_window(columns["validity"], template.timezone, template.claim_start)
    coupon = {
        "coupon_id": _ONE,
        "face_value_minor": face_value_minor,
        "valid_from": valid_from,
        "valid_to": valid_to,
    }
    return apply_coupons(order, [rule_of(columns, coupon)], valid_from)
