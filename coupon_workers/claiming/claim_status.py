"""How a claim stands: queued at the gate, or ended in the database, for ever readable (DESIGN 3.2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from redis.exceptions import RedisError
from sqlalchemy import text

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.claiming.outcome import HELD
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import from_ms
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import route_in, route_of

WAIT_STEP_S = 0.02
"""Pause between two looks at a queued claim: short against the time settling takes, long against a look's cost."""


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """``state`` is "queued", "issued", the reason of a rejection, or "held": for review, which its caller is not told.

    ``settled_at`` and ``user_id`` are None while it is queued: the gate keeps whose it is in the stream alone.
    """

    claim_id: int
    template_id: int
    state: str
    queued_at: datetime
    user_id: str | None = None
    settled_at: datetime | None = None

    @property
    def status(self) -> str:
        """The word of API.md: queued, issued or rejected."""
        if self.state == HELD:
            return "queued"
        return self.state if self.state in ("queued", "issued") else "rejected"

    @property
    def told_state(self) -> str:
        """``state`` as a caller may know it."""
        return "queued" if self.state == HELD else self.state

    @property
    def reason(self) -> str | None:
        """Why it was rejected, or None."""
        return self.state if self.status == "rejected" else None


def claim_status(services: Services, claim_id: int, wait_s: float = 0.0) -> ClaimStatus | None:
    """The claim's present status; None when there is no such claim.

    With ``wait_s`` a queued claim is waited for that many seconds at most. Raises ``StoreUnavailable``; without Redis
    only a claim that is settled can be told.
    """
    # Redis first: a claim leaves it only after the database has it, so it is never missed between the two.
    try:
        queued = _queued_until(services, claim_id, time.monotonic() + wait_s)
    except StoreUnavailable:
        if settled := _settled(services, claim_id):
            return settled
        raise
    return queued or _settled(services, claim_id)


def _queued_until(services: Services, claim_id: int, deadline_s: float) -> ClaimStatus | None:
    """The claim if it is queued still at ``deadline_s`` by the monotonic clock; None as soon as it is not."""
    found = _find_queued(services, claim_id)
    if found is None:
        return None
    keys, queued = found
    while time.monotonic() < deadline_s:
        time.sleep(WAIT_STEP_S)
        if not _is_queued(services, keys, claim_id):
            return None
    return queued


def _find_queued(services: Services, claim_id: int) -> tuple[BucketKeys, ClaimStatus] | None:
    """The claim and the bucket that holds it. Asks every warm template of its route: not for each look of a wait."""
    route = route_in(claim_id)
    try:
        buckets = [member.decode().split(".") for member in cast(set[bytes], services.redis.smembers(WARM_TEMPLATES))]
        candidates = [
            BucketKeys(int(template_id), int(bucket))
            for template_id, bucket in buckets
            if route_of(int(template_id)) == route
        ]
        pipeline = services.redis.pipeline(transaction=False)
        for keys in candidates:
            pipeline.hget(keys.claims, str(claim_id))
        answers: list[Any] = pipeline.execute() if candidates else []
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    for keys, accepted_ms in zip(candidates, answers, strict=True):
        if accepted_ms is not None:
            return keys, ClaimStatus(claim_id, keys.template_id, "queued", from_ms(int(accepted_ms)))
    return None


def _is_queued(services: Services, keys: BucketKeys, claim_id: int) -> bool:
    try:
        return bool(services.redis.hexists(keys.claims, str(claim_id)))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error


# One statement, one snapshot: a coupon that is being archived is in one of the two tables.
_SETTLED = text(
    "SELECT coupon_id AS claim_id, template_id, user_id, 'issued' AS state, claimed_at, issued_at AS settled_at"
    "  FROM coupon WHERE coupon_id = :claim_id AND source = 'claim'"
    " UNION ALL "
    "SELECT coupon_id, template_id, user_id, 'issued', claimed_at, issued_at"
    "  FROM coupon_archive WHERE coupon_id = :claim_id AND source = 'claim'"
    " UNION ALL "
    "SELECT claim_id, template_id, user_id, reason, claimed_at, rejected_at"
    "  FROM claim_rejection WHERE claim_id = :claim_id"
    " UNION ALL "
    "SELECT claim_id, template_id, user_id, state, claimed_at, NULL"
    "  FROM risk_review WHERE claim_id = :claim_id AND state = 'held'"
)

_OF_REQUESTS = text(
    # The first claim of a request answers it; later ones were rejected as its duplicates.
    "WITH asked AS (SELECT * FROM unnest(CAST(:templates AS bigint[]), CAST(:users AS text[]),"
    "                                    CAST(:requests AS text[])) AS a(template_id, user_id, request_id))"
    " SELECT DISTINCT ON (template_id, user_id, request_id) * FROM ("
    "SELECT coupon_id AS claim_id, template_id, user_id, request_id, 'issued' AS state, claimed_at,"
    "  issued_at AS settled_at, 0 AS rank FROM asked JOIN coupon USING (template_id, user_id, request_id)"
    " UNION ALL "
    # OFFSET 0: by the users' keys, never all there is.
    "SELECT a.coupon_id, a.template_id, a.user_id, a.request_id, 'issued', a.claimed_at, a.issued_at, 0"
    "  FROM asked CROSS JOIN LATERAL (SELECT * FROM coupon_archive c WHERE c.user_id = asked.user_id"
    "   AND c.template_id = asked.template_id AND c.request_id = asked.request_id OFFSET 0) AS a"
    " UNION ALL "
    "SELECT claim_id, template_id, user_id, request_id, reason, claimed_at, rejected_at, 1"
    "  FROM asked JOIN claim_rejection USING (template_id, user_id, request_id)"
    " UNION ALL "
    "SELECT claim_id, template_id, user_id, request_id, state, claimed_at, NULL, 0"
    "  FROM asked JOIN risk_review USING (template_id, user_id, request_id) WHERE state = 'held'"
    ") AS answers ORDER BY template_id, user_id, request_id, rank, claim_id"
)


def _settled(services: Services, claim_id: int) -> ClaimStatus | None:
    return _read(services, _SETTLED, {"claim_id": claim_id})


def find_claims_of_requests(services: Services, requests: Sequence[ClaimRequest]) -> dict[ClaimRequest, ClaimStatus]:
    """The settled claims that answered these requests before, in one query; others are left out.

    Raises ``StoreUnavailable``.
    """
    templates, users, texts = ([request[field] for request in requests] for field in range(3))
    arguments = {"templates": templates, "users": users, "requests": texts}
    with database_errors(), services.engine.connect() as connection:
        rows = connection.execute(_OF_REQUESTS, arguments).all()
    found = {(row.template_id, row.user_id, row.request_id): _status_of(row) for row in rows}
    return {request: found[request[:3]] for request in requests if request[:3] in found}


def _read(services: Services, statement: Any, arguments: dict[str, Any]) -> ClaimStatus | None:
    with database_errors(), services.engine.connect() as connection:
        row = connection.execute(statement, arguments).first()
    return None if row is None else _status_of(row)


def _status_of(row: Any) -> ClaimStatus:
    return ClaimStatus(row.claim_id, row.template_id, row.state, row.claimed_at, row.user_id, row.settled_at)
