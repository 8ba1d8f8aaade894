"""A client for the HTTP API: typed, synchronous, and with retries that cannot do a thing twice (docs/client.md).

It knows nothing of the rest of the package, and needs none of its servers.
"""

from coupon_workers.client.client import CouponClient
from coupon_workers.client.error import (
    ClientError,
    Conflict,
    Gone,
    InvalidRequest,
    NoAnswer,
    NotAllowed,
    NotFound,
    Problem,
    TryLater,
)
from coupon_workers.client.retry_policy import RetryPolicy

__all__ = [
    "ClientError",
    "Conflict",
    "CouponClient",
    "Gone",
    "InvalidRequest",
    "NoAnswer",
    "NotAllowed",
    "NotFound",
    "Problem",
    "RetryPolicy",
    "TryLater",
]
