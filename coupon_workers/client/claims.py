"""Claims, and what a user may claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from coupon_workers.client.caller import Caller, given, segment
from coupon_workers.client.claim_answer import BatchItem, ClaimAnswer, ClaimBody, ClaimStatusAnswer, OfferAnswer


class Claims:
    """Scope ``storefront``."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def claim(
        self,
        template_id: str,
        user_id: str,
        request_id: str,
        *,
        channel: str | None = None,
        device_id: str | None = None,
        ip: str | None = None,
        address_hash: str | None = None,
    ) -> ClaimAnswer:
        """Claim a coupon. ``request_id`` makes it one claim of this user and template for good: keep it with what the
        user did, so that whoever takes it up again sends the same."""
        body = given(
            template_id=template_id,
            user_id=user_id,
            request_id=request_id,
            channel=channel,
            device_id=device_id,
            ip=ip,
            address_hash=address_hash,
        )
        return cast("ClaimAnswer", self._caller.write_numbered("/v1/claims", body, request_id))

    def claim_many(self, claims: Sequence[ClaimBody]) -> list[BatchItem]:
        """Up to 500 claims, decided in order; each item has the status that the claim would have had alone."""
        number = ",".join(claim["request_id"] for claim in claims)
        answer = self._caller.write_numbered("/v1/claims/batch", {"claims": list(claims)}, number)
        return cast("list[BatchItem]", answer["results"])

    def read(self, claim_id: str, *, wait_s: float = 0) -> ClaimStatusAnswer:
        """How a claim stands; with ``wait_s``, of at most 10, once it is settled if that comes in time."""
        answer = self._caller.read(f"/v1/claims/{segment(claim_id)}", {"wait": wait_s or None}, waits_s=wait_s)
        return cast("ClaimStatusAnswer", answer)

    def offers(self, user_id: str, *, channel: str | None = None) -> Iterator[OfferAnswer]:
        """Active and coming templates with this user's state, newest first."""
        return self._caller.every("/v1/claim-center", {"user_id": user_id, "channel": channel})
