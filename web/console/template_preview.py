"""What a template would do: to a sample cart, by the real engine; and in the eyes of a user."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from coupon_workers.errors import InvalidInput
from coupon_workers.notify.message_text import Offer, offer_text, write_text
from coupon_workers.orders.discount import Discounts
from coupon_workers.orders.order import OrderBody
from coupon_workers.orders.sample_discount import sample_discount
from coupon_workers.templates.template import TemplateFields
from coupon_workers.templates.template_row import columns_of
from coupon_workers.templates.validity import valid_window
from coupon_workers.templates.whole_body import errors_of
from web.console import field_reading as read
from web.console.form import Form

CART_LINES = (1, 2, 3)

_CART_COLUMNS = {"unit_price": "cart_amount", "product_id": "cart_product", "category_id": "cart_category"}

SAMPLE_MINOR = 10_000
"""What a line costs where there is no threshold to go by."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A cart with one coupon; ``face_value_minor`` where it is a random amount."""

    order: OrderBody
    discounts: Discounts
    face_value_minor: int | None

    @property
    def shares(self) -> dict[str, int]:
        """What is taken off each line, by its id."""
        taken = self.discounts.applied[0].allocations if self.discounts.applied else ()
        return {each.line_id: each.amount_minor for each in taken}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a user sees in one language: the offer, and the message that tells of the coupon."""

    offer: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Preview:
    """All of it."""

    samples: list[Sample]
    seen: dict[str, Seen]


def preview_of(template: TemplateFields, form: Form) -> Preview:
    """The preview of a template that is whole. ``form``: where the cart's lines stand, if any do.

    Raises ``InvalidInput`` for a cart that cannot be read, at the form's own fields.
    """
    order = _cart(template, form)
    values = [None] if template.pool is None else [template.pool.min, template.pool.max]
    samples = [Sample(order, sample_discount(template, order, value), value) for value in values]
    return Preview(samples, {language: _seen(template, language) for language in ("en", "zh")})


def _cart(template: TemplateFields, form: Form) -> OrderBody:
    products, categories = template.scope.products.include, template.scope.categories.include
    lines, places = [], []
    for number in CART_LINES:
        if form[f"cart_amount_{number}"]:
            try:
                price = read.money(form[f"cart_amount_{number}"], template.currency)
            except read.FieldError as error:
                raise InvalidInput([(f"cart_amount_{number}", str(error))]) from None
            product, category = form[f"cart_product_{number}"], form[f"cart_category_{number}"]
            lines.append((product or (products[0] if products else f"p-{number}"), category, price))
            places.append(number)
    if not lines:
        price = template.threshold * 3 // 5 or SAMPLE_MINOR
        lines = [(products[0] if products else "p-1", "", price), (products[-1] if products else "p-2", "", price)]
    body = {
        "user_id": "somebody",
        "currency": template.currency,
        "channel": template.scope.channels[0] if template.scope.channels else None,
        "user_tags": template.scope.user_tags[:1],
        "lines": [
            {
                "line_id": str(place),
                "product_id": product,
                "category_id": category or (categories[0] if categories else None),
                "unit_price": price,
                "quantity": 1,
            }
            for place, (product, category, price) in enumerate(lines, start=1)
        ],
    }
    try:
        return OrderBody.model_validate(body)
    except ValidationError as error:
        raise InvalidInput([(_cart_field(field, places), told) for field, told in errors_of(error)]) from None


def _cart_field(field: str, places: list[int]) -> str:
    """The form's field for ``lines.0.product_id``, where the first line that is filled in is one of ``places``."""
    _, _, rest = field.partition(".")
    place, _, name = rest.partition(".")
    column = _CART_COLUMNS.get(name)
    return f"{column}_{places[int(place)]}" if column and int(place) < len(places) else field


def _seen(template: TemplateFields, language: str) -> Seen:
    columns = columns_of(template)
    _, valid_to = valid_window(columns["validity"], template.timezone, template.claim_start)
    offer = Offer(
        name=template.name,
        type=template.type,
        currency=template.currency,
        amount_minor=template.pool.max if template.pool else template.amount,
        percent_off_bp=template.percent_off,
        max_discount_minor=template.max_discount,
        threshold_minor=template.threshold,
        timezone=template.timezone,
        valid_to=valid_to,
    )
    subject, text = write_text(language, "coupon.issued", offer)
    return Seen(offer_text(language, offer), subject, text)
