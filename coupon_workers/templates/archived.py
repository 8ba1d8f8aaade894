"""A template whose coupons are being archived is over for good: what its users had is not counted any more."""

from __future__ import annotations

from sqlalchemy import Connection, text

from coupon_workers.errors import Conflict

_ARCHIVED = text("SELECT archived_quantity FROM coupon_template WHERE template_id = :template_id")


def check_nothing_archived(connection: Connection, template_id: int) -> None:
    """Raises ``Conflict`` ``HAS_ARCHIVED``, with how many coupons are, when the template must not open again."""
    archived = connection.scalar(_ARCHIVED, {"template_id": template_id})
    if archived:
        raise has_archived(archived)


def has_archived(archived: int) -> Conflict:
    """The refusal: limits and requests of users are counted by their coupons, and some of those are put away."""
    detail = f"{archived} coupons of this template are archived: it does not open again; clone it instead"
    return Conflict("HAS_ARCHIVED", detail, archived=archived)
