"""A shop whose coupons grow old: each way in which one ends, at the shop's own time, and what lies where afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from coupon_workers.coupons.archive import archive_coupons
from tests.support.closing import ClosingShop
from tests.support.gift import give
from tests.support.order_shop import START

AFTER = timedelta(days=400)
"""As the setting has it when nobody sets it."""

LONG_AFTER = START + timedelta(days=900)
"""When all that the shop had in its first weeks is old."""


@dataclass
class ArchiveShop(ClosingShop):
    """A closing shop with an archiver."""

    def template(self, **columns: Any) -> int:
        """A template that could be claimed for a day from the shop's opening, and was not changed since."""
        window = {"claim_start": START - timedelta(hours=1), "claim_end": START + timedelta(days=1)}
        return super().template(**({"updated_at": START} | window | columns))

    def issue(self, template_id: int, user: str | None = None, **columns: Any) -> int:
        """A coupon that was issued at the shop's time."""
        now = self.clock.now
        return super().issue(template_id, user, **({"issued_at": now, "updated_at": now} | columns))

    def ended(self, template_id: int, user: str | None = None, **columns: Any) -> int:
        """A coupon that was issued, and whose end will be found by the next ``expire``."""
        return self.issue(template_id, user, **({"valid_to": self.clock.now + timedelta(minutes=1)} | columns))

    def expire(self) -> int:
        """Let five minutes pass, and end what has ended."""
        self.clock.pass_by(minutes=5)
        return super().expire()

    def give(self, coupon_id: int, to_user: str) -> int:
        """Give a coupon of the shop's user away; the receiver's."""
        return give(self.services, self.user, coupon_id, to_user)

    def revoke(self, coupon_id: int) -> None:
        """Revoke a coupon as an operator will."""
        named = {"id": coupon_id, "now": self.clock.now}
        self.execute(
            "UPDATE coupon SET status = 'revoked', version = 2, updated_at = :now WHERE coupon_id = :id", **named
        )
        self.execute(
            "INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, from_status, to_status, operator, at)"
            " SELECT user_id, coupon_id, 2, 'revoke', 'unused', 'revoked', 'key-1', :now FROM coupon"
            " WHERE coupon_id = :id",
            **named,
        )

    def archive(self, **options: Any) -> int:
        """One turn of the archiver at the shop's time."""
        return archive_coupons(self.services, self.clock.now, **options)

    def archived(self) -> set[int]:
        """The coupons in the archive."""
        return {coupon_id for (coupon_id,) in self.rows("SELECT coupon_id FROM coupon_archive")}

    def living(self) -> set[int]:
        """The coupons that are where they were."""
        return {coupon_id for (coupon_id,) in self.rows("SELECT coupon_id FROM coupon")}

    def counters(self, template_id: int) -> tuple[int, int, int]:
        """(issued, archived, archived of those granted) by the template's row."""
        [row] = self.rows(
            "SELECT issued_quantity, archived_quantity, archived_granted_quantity FROM coupon_template"
            " WHERE template_id = :id",
            id=template_id,
        )
        return row[0], row[1], row[2]
