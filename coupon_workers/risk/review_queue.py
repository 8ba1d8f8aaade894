"""The queue of held claims, the one whose deadline comes first at its head, and every rule that fired of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from sqlalchemy import text

from coupon_workers.risk.review_reading import ReviewAnswer, review_answer
from coupon_workers.risk.verdict_reading import VerdictAnswer, verdict_answer
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

HEAD = (datetime(1970, 1, 1, tzinfo=UTC), 0)

_QUEUE = text("""
    SELECT * FROM risk_review
     WHERE state = 'held' AND (deadline_at, claim_id) > (:deadline, :claim_id)
     ORDER BY deadline_at, claim_id LIMIT :limit
""")
_FIRED = text("""
    SELECT * FROM risk_verdict WHERE user_id = ANY (:users) AND claim_id = ANY (:claims) ORDER BY verdict_id
""")
_ONE = text("SELECT * FROM risk_review WHERE claim_id = ANY (:claims) ORDER BY deadline_at, claim_id")


def read_queue(services: Services, *, limit: int, after: tuple[datetime, int] = HEAD) -> list[ReviewAnswer]:
    """Up to ``limit`` held claims behind ``after``, a deadline and a claim. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        rows = connection.execute(_QUEUE, {"deadline": after[0], "claim_id": after[1], "limit": limit})
        return [review_answer(row) for row in rows.mappings()]


def read_these(services: Services, claim_ids: Iterable[int]) -> list[ReviewAnswer]:
    """The reviews of these claims, whatever became of them. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        rows = connection.execute(_ONE, {"claims": sorted(set(claim_ids))})
        return [review_answer(row) for row in rows.mappings()]


def read_fired(services: Services, reviews: Iterable[ReviewAnswer]) -> dict[str, list[VerdictAnswer]]:
    """Every rule that fired of each claim, by its id, in the rules' order. Raises ``StoreUnavailable``."""
    reviews = list(reviews)
    wanted = {
        "users": sorted({review.user_id for review in reviews}),
        "claims": sorted(int(review.claim_id) for review in reviews),
    }
    fired: dict[str, list[VerdictAnswer]] = defaultdict(list)
    with transaction(services.engine) as connection:
        for row in connection.execute(_FIRED, wanted).mappings():
            fired[str(row["claim_id"])].append(verdict_answer(row))
    return fired
