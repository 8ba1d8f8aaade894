"""The coupon that has taken another's place, and why; and the one whose place a coupon has taken."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from coupon_workers.audit.action import AuditAction
from coupon_workers.coupons.reissue_sql import REPLACES_PREFIX
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_REPLACEMENT = text("""
    SELECT new.coupon_id, (SELECT after ->> 'reason' FROM audit_log
                            WHERE subject = 'coupon:' || new.coupon_id AND action = :action
                            ORDER BY audit_id LIMIT 1) AS reason
      FROM (SELECT user_id, coupon_id, batch_no, source FROM coupon
             UNION ALL
            SELECT user_id, coupon_id, batch_no, source FROM coupon_archive) AS new
     WHERE new.user_id = :user_id AND new.source = 'manual' AND new.batch_no = :batch_no
     LIMIT 1
""")

_ORIGINAL = text(f"""
    SELECT substr(batch_no, {len(REPLACES_PREFIX) + 1})
      FROM (SELECT user_id, coupon_id, batch_no, source FROM coupon
             UNION ALL
            SELECT user_id, coupon_id, batch_no, source FROM coupon_archive) AS c
     WHERE user_id = :user_id AND coupon_id = :coupon_id AND source = 'manual' AND starts_with(batch_no, :prefix)
""")


@dataclass(frozen=True, slots=True)
class Replacement:
    """The new coupon; the reason that was given, None where the audit log has none."""

    coupon_no: str
    reason: str | None


def replacement_of(services: Services, user_id: str, coupon_id: int) -> Replacement | None:
    """What has taken the place of the user's coupon; None while nothing has. Raises ``StoreUnavailable``."""
    named = {
        "user_id": user_id,
        "batch_no": f"{REPLACES_PREFIX}{coupon_id}",
        "action": AuditAction.COUPON_REISSUE.value,
    }
    with transaction(services.engine) as connection:
        found = connection.execute(_REPLACEMENT, named).one_or_none()
    return None if found is None else Replacement(str(found.coupon_id), found.reason)


def original_of(services: Services, user_id: str, coupon_id: int) -> str | None:
    """The number of the coupon whose place the user's coupon has taken, if it has. Raises ``StoreUnavailable``."""
    named = {"user_id": user_id, "coupon_id": coupon_id, "prefix": REPLACES_PREFIX}
    with transaction(services.engine) as connection:
        return connection.execute(_ORIGINAL, named).scalar()
