"""The tables, typed and with every constraint named, and their migrations."""

from coupon_workers.schema.access import ApiKey, Idempotency
from coupon_workers.schema.base import Base
from coupon_workers.schema.claim_rejection import ClaimRejection, ClaimSetAside
from coupon_workers.schema.coupon import Coupon
from coupon_workers.schema.coupon_flow import CouponFlow
from coupon_workers.schema.coupon_template import CouponTemplate
from coupon_workers.schema.outbox import Outbox
from coupon_workers.schema.scheduling import JobRun, SchedulerLease

__all__ = [
    "ApiKey",
    "Base",
    "ClaimRejection",
    "ClaimSetAside",
    "Coupon",
    "CouponFlow",
    "CouponTemplate",
    "Idempotency",
    "JobRun",
    "Outbox",
    "SchedulerLease",
]
