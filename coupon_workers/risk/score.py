"""Scores of accounts, kept ahead of time: set by an operator, or by the shop's scorer for those who were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.risk.policy import MOST_SCORE
from coupon_workers.risk.scorer import RiskScorer, Score, load_scorer
from coupon_workers.risk.subject import field_of, tell_gates, value_of
from coupon_workers.runtime.array_literal import numbers, texts
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.templates.field_type import Instant

log = get_logger(__name__)

AT_A_TIME = 500
PATIENCE = timedelta(minutes=2)
"""After which accounts are asked for again whose scorer failed or died."""

BY_SCORER = "scorer"

_PUT = text("""
    INSERT INTO risk_score (user_id, score, expires_at, version, changed_by, changed_at)
    VALUES (:user_id, :score, :expires_at, nextval('risk_version'), :operator, :now)
    ON CONFLICT (user_id) DO UPDATE SET score = excluded.score, expires_at = excluded.expires_at, due_at = NULL,
           version = nextval('risk_version'), changed_by = excluded.changed_by, changed_at = excluded.changed_at
    RETURNING *
""")
_ONE = text("SELECT * FROM risk_score WHERE user_id = :user_id AND score IS NOT NULL")
_ASK = text("""
    INSERT INTO risk_score AS s (user_id, version, due_at, changed_at)
    SELECT user_id, nextval('risk_version'), :now, :now FROM unnest(CAST(:users AS text[])) AS u(user_id)
     ORDER BY user_id
    ON CONFLICT (user_id) DO UPDATE SET due_at = excluded.due_at
     WHERE s.due_at IS NULL AND (s.score IS NULL OR s.expires_at < :now)
""")
_TAKE = text("""
    UPDATE risk_score SET due_at = :again WHERE user_id = ANY (ARRAY (
        SELECT user_id FROM risk_score WHERE due_at <= :now ORDER BY due_at LIMIT :most FOR UPDATE SKIP LOCKED
    )) RETURNING user_id
""")
# What an operator has set meanwhile stays.
_WRITE = text("""
    UPDATE risk_score s SET score = n.score, expires_at = :now + n.ttl_s * interval '1 s', version = n.version,
           due_at = NULL, changed_by = :by, changed_at = :now
      FROM (SELECT u.*, nextval('risk_version') AS version
              FROM unnest(CAST(:users AS text[]), CAST(:scores AS bigint[]), CAST(:ttls AS bigint[]))
                AS u(user_id, score, ttl_s) ORDER BY user_id) AS n
     WHERE s.user_id = n.user_id AND s.due_at IS NOT NULL
    RETURNING s.user_id, s.score, s.expires_at, s.version
""")


class ScoreAnswer(BaseModel):
    """How risky an account is."""

    model_config = ConfigDict(frozen=True)

    user_id: str
    score: int = Field(description="0 to 1000")
    expires_at: Instant | None = Field(description="null: good until it is set anew")
    changed_by: str | None = Field(description="the key's id, or `scorer`")
    changed_at: Instant


def put_score(
    services: Services, user_id: str, score: int, operator: str | None, *, expires_at: datetime | None = None
) -> ScoreAnswer:
    """Set a user's score, as of now at every gate. Raises ``InvalidInput`` for one that has expired,
    ``StoreUnavailable``."""
    wanted = {"score": score, "expires_at": expires_at}
    with transaction(services.engine) as connection:
        before = connection.execute(_ONE, {"user_id": user_id}).mappings().first()
        if before is not None and wanted == {part: before[part] for part in wanted}:
            return _answer(before)
        if expires_at is not None and expires_at <= services.clock():
            raise InvalidInput([("expires_at", "must lie in the future")])
        arguments = wanted | {"user_id": user_id, "operator": operator, "now": services.clock()}
        after = connection.execute(_PUT, arguments).mappings().one()
        told = {"score": before["score"]} if before else None
        record(connection, AuditAction.RISK_SCORE_PUT, f"user:{user_id}", before=told, after=wanted)
    tell_gates(services, [(field_of("score", user_id), value_of(score, expires_at, after["version"]))])
    return _answer(after)


def read_score(services: Services, user_id: str) -> ScoreAnswer:
    """The score a user has. Raises ``NotFound`` ``SCORE_NOT_FOUND``, ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        row = connection.execute(_ONE, {"user_id": user_id}).mappings().first()
    if row is None:
        raise NotFound("SCORE_NOT_FOUND", "nothing is known of this account")
    return _answer(row)


def ask_scores(services: Services, user_ids: Sequence[str]) -> None:
    """Have the scorer look at users who have no score in force. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        connection.execute(_ASK, {"users": texts(sorted(set(user_ids))), "now": services.clock()})


def score_due(services: Services, scorer: RiskScorer | None = None) -> int:
    """Have the scorer say the scores that are due; returns how many it knew. Without a scorer they wait.

    Safe at any time, by any number. Raises ``StoreUnavailable``, and whatever the scorer raises.
    """
    path = services.settings.risk_scorer
    if scorer is None and path is None:
        return 0
    scorer = scorer or load_scorer(str(path))
    known = 0
    while user_ids := _take(services):
        known += _write(services, scorer.score_users(user_ids), set(user_ids))
    return known


def _take(services: Services) -> list[str]:
    now = services.clock()
    with transaction(services.engine) as connection:
        return list(connection.scalars(_TAKE, {"now": now, "again": now + PATIENCE, "most": AT_A_TIME}))


def _write(services: Services, scores: Mapping[str, Score], asked: set[str]) -> int:
    known = {user_id: score for user_id, score in scores.items() if user_id in asked}
    wrong = [user_id for user_id, score in known.items() if not 0 <= score.score <= MOST_SCORE or score.ttl_s < 1]
    if wrong:
        log.error("the scorer said what is no score", count=len(wrong))
    known = {user_id: score for user_id, score in known.items() if user_id not in wrong}
    columns = {
        "users": texts(known),
        "scores": numbers(score.score for score in known.values()),
        "ttls": numbers(score.ttl_s for score in known.values()),
    }
    with transaction(services.engine) as connection:
        rows = connection.execute(_WRITE, columns | {"now": services.clock(), "by": BY_SCORER}).all()
    tell_gates(
        services, [(field_of("score", row.user_id), value_of(row.score, row.expires_at, row.version)) for row in rows]
    )
    return len(rows)


def _answer(row: Mapping[Any, Any]) -> ScoreAnswer:
    return ScoreAnswer.model_validate({name: row[name] for name in ScoreAnswer.model_fields})
