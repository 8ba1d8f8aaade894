"""How sending a message may fail. A channel raises one of these; everything else is a fault of ours, and retried."""

from __future__ import annotations

from coupon_workers.errors import CouponWorkersError


class DeliveryFailure(CouponWorkersError):  # noqa: N818 - it says what happened
    """The message was not taken. ``status`` is the HTTP status or the SMTP code, if there was an answer."""

    def __init__(self, detail: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(detail)


class TryAgain(DeliveryFailure):
    """The message was not taken this time; the target takes others."""


class Unreachable(TryAgain):
    """The target takes nothing at present: it is left alone for a while, and the message comes again."""


class Refused(DeliveryFailure):
    """The message will never be taken."""


class Gone(DeliveryFailure):
    """The target wants no more messages at all."""
