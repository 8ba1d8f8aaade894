"""Letters: what users are told, made from the template and the coupon as they are when the message is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from coupon_workers.notify.contact import needs_contact
from coupon_workers.notify.delivery_lease import Taken
from coupon_workers.notify.message_text import Offer, write_text
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_FACTS = text("""
    SELECT d.delivery_id, d.event, d.payload->>'reason' AS reason, t.name, t.type, t.currency,
           coalesce(c.face_value_minor, t.amount_minor) AS amount_minor, t.percent_off_bp, t.max_discount_minor,
           t.threshold_minor, t.timezone, c.valid_to, c.status, a.address
      FROM delivery d JOIN coupon_template t USING (template_id)
      LEFT JOIN coupon c ON c.user_id = d.user_id AND c.coupon_id = d.coupon_id
      LEFT JOIN user_contact a ON a.user_id = d.user_id AND a.channel = :channel
     WHERE d.delivery_id = ANY (CAST(:ids AS bigint[]))
""")


@dataclass(frozen=True, slots=True)
class Letter:
    """Where to, and the words. Neither address nor subject holds a line end."""

    address: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Pointless:
    """There is nothing to send, for this reason."""

    reason: str


def write_letters(services: Services, channel: str, batch: Sequence[Taken]) -> dict[int, Letter | Pointless]:
    """The letter of each delivery in hand, by its id. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        key = {"channel": channel, "ids": [taken.delivery_id for taken in batch]}
        rows = connection.execute(_FACTS, key).all()
    letters: dict[int, Letter | Pointless] = {
        taken.delivery_id: Pointless("the template is no more") for taken in batch
    }
    return letters | {row.delivery_id: _letter(services, channel, row) for row in rows}


def _letter(services: Services, channel: str, row: Any) -> Letter | Pointless:
    if needs_contact(channel) and row.address is None:
        return Pointless(f"the user has no address for {channel}")
    if row.event == "coupon.expiring" and row.status != "unused":
        return Pointless("the coupon is not unused any more")
    if row.event != "claim.rejected" and (row.valid_to is None or row.valid_to <= services.clock()):
        return Pointless("the coupon is not valid any more")
    offer = Offer(
        name=row.name,
        type=row.type,
        currency=row.currency,
        amount_minor=row.amount_minor,
        percent_off_bp=row.percent_off_bp,
        max_discount_minor=row.max_discount_minor,
        threshold_minor=row.threshold_minor,
        timezone=row.timezone,
        valid_to=row.valid_to,
    )
    subject, words = write_text(services.settings.message_language, row.event, offer, row.reason)
    return Letter(row.address or "", subject, words)
