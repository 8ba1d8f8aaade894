"""The statement that issues a batch: claims as rows, coupons with all that belongs to them, and what to doubt."""

from __future__ import annotations

from typing import Any

from coupon_workers.coupons.partition_sql import PARTITION
from coupon_workers.coupons.source_sql import COUNTED
from coupon_workers.coupons.wallet_note import noted
from coupon_workers.runtime.prepared_statement import PreparedStatement

Row = dict[str, Any]


def entry(*, pool: bool) -> str:
    """The claims as rows. Instants travel as integers of milliseconds: exact, and much cheaper to write and read than
    their texts."""
    column, array, name = (", face_value", ", CAST(:values AS bigint[])", ", face_value") if pool else ("", "", "")
    return f"""
    entry AS (
        SELECT claim_id, user_id, request_id, claim_seq, NULLIF(channel, '') AS channel{column},
               timestamptz 'epoch' + claimed_ms * interval '1 ms' AS claimed_at,
               timestamptz 'epoch' + from_ms * interval '1 ms' AS valid_from,
               timestamptz 'epoch' + to_ms * interval '1 ms' AS valid_to
          FROM unnest(CAST(:claim_ids AS bigint[]), CAST(:users AS text[]), CAST(:requests AS text[]),
                      CAST(:seqs AS bigint[]), CAST(:channels AS text[]), CAST(:claimed AS bigint[]),
                      CAST(:froms AS bigint[]), CAST(:tos AS bigint[]){array})
            AS e(claim_id, user_id, request_id, claim_seq, channel, claimed_ms, from_ms, to_ms{name})
    )"""


def _issue(*, pool: bool) -> str:
    """Coupons with history and events, and the counters as far as they may move."""
    column, value = (", face_value_minor", ", face_value") if pool else ("", "")
    return f"""
    issued AS (
        INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from,
                            valid_to, source, channel, claimed_at{column})
        SELECT user_id, claim_id, :template_id, claim_seq, request_id, :version, valid_from, valid_to, 'claim',
               channel, claimed_at{value}
          FROM entry ORDER BY {PARTITION}, claim_id
        RETURNING user_id, coupon_id, request_id
    ), flow AS (
        INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, request_id)
        SELECT user_id, coupon_id, 1, 'issue', 'unused', 'claim', request_id FROM issued
    ),{noted("issued")}, told AS (
        INSERT INTO outbox (event, user_id, template_id, coupon_id)
        SELECT 'coupon.issued', user_id, :template_id, coupon_id FROM issued
    ), counted AS (
        UPDATE coupon_template SET issued_quantity = issued_quantity + (SELECT count(*) FROM issued)
         WHERE template_id = :template_id
           AND pause_epoch = :pause_epoch AND rejected_quantity = :rejected_quantity
           AND held_quantity = :held_quantity
           AND issued_quantity + reserved_quantity + (SELECT count(*) FROM issued) <= total_quantity
        RETURNING 1
    )"""


# ANY has the amounts looked up by key: the statistics know nothing of a new pool, the planner takes it for a small one,
# and would read the whole of it for each batch.
DRAWN = """
    drawn AS (
        UPDATE pool_value p SET issued_quantity = p.issued_quantity + asked.n
          FROM (SELECT face_value, count(*) AS n FROM entry GROUP BY face_value) AS asked
         WHERE p.template_id = :template_id AND p.amount_minor = ANY(CAST(:values AS bigint[]))
           AND p.amount_minor = asked.face_value AND p.issued_quantity + asked.n <= p.quantity
        RETURNING asked.n
    )"""
_ISSUE = f"{entry(pool=False)}, {_issue(pool=False)}"
_ISSUE_OF_A_POOL = f"{entry(pool=True)}, {DRAWN}, {_issue(pool=True)}"
_COUNTED = "EXISTS (SELECT FROM counted)"
_COUNTED_OF_A_POOL = f"{_COUNTED} AND (SELECT sum(n) FROM drawn) = (SELECT count(*) FROM entry)"

# Each looks for what the gate should have refused: the second line of defence when Redis has lost its memory.
# "+ 0" keeps the index on template_id out: of a new template the statistics know nothing, the planner takes it for
# one of a single coupon, and would go through all its coupons for each user. What other users gave a user is no claim,
# nor is what he won.
BEYOND_LIMIT = f"""
    EXISTS (SELECT FROM (SELECT user_id, count(*) AS n FROM entry GROUP BY user_id) AS asked
             WHERE n + (SELECT count(*) FROM coupon c
                         WHERE c.user_id = asked.user_id AND c.template_id + 0 = :template_id
                           AND {COUNTED}) > :user_limit)"""
_BEYOND_DAILY_LIMIT = f"""
    EXISTS (SELECT FROM (SELECT user_id, CAST(claimed_at AT TIME ZONE :timezone AS date) AS day, count(*) AS n
                           FROM entry GROUP BY 1, 2) AS asked
             WHERE n + (SELECT count(*) FROM coupon c
                         WHERE c.user_id = asked.user_id AND c.template_id + 0 = :template_id
                           AND {COUNTED}
                           AND CAST(c.claimed_at AT TIME ZONE :timezone AS date) = asked.day) > :daily_limit)"""
_REJECTED_BEFORE = """
    EXISTS (SELECT FROM entry JOIN claim_rejection r USING (user_id, request_id)
             WHERE r.template_id = :template_id)"""

# Whatever the request: what is held has used its user's allowance too.
_HELD_BEFORE = """
    EXISTS (SELECT FROM entry JOIN risk_review r USING (user_id)
             WHERE r.template_id = :template_id AND r.state = 'held')"""


def has_pool(template: Row) -> bool:
    """Whether its coupons are worth what they drew."""
    return bool(template["type"] == "random_amount")


def issue_of(template: Row) -> tuple[str, str]:
    """The expressions that issue, and the condition that all was counted."""
    if has_pool(template):
        return _ISSUE_OF_A_POOL, _COUNTED_OF_A_POOL
    return _ISSUE, _COUNTED


# That some claim is beyond a limit or was answered before. What a template does not have is not looked for.
_DOUBTFUL = f"""
    (:user_limit IS NOT NULL AND {BEYOND_LIMIT}) OR (:daily_limit IS NOT NULL AND {_BEYOND_DAILY_LIMIT})
    OR (:rejected_quantity > 0 AND {_REJECTED_BEFORE}) OR (:held_quantity > 0 AND {_HELD_BEFORE})"""

_TYPES = {
    "template_id": "bigint",
    "version": "bigint",
    "pause_epoch": "bigint",
    "rejected_quantity": "bigint",
    "held_quantity": "bigint",
    "user_limit": "bigint",
    "daily_limit": "bigint",
    "timezone": "text",
    "claim_ids": "bigint[]",
    "users": "text[]",
    "requests": "text[]",
    "seqs": "bigint[]",
    "channels": "text[]",
    "claimed": "bigint[]",
    "froms": "bigint[]",
    "tos": "bigint[]",
}
_ALL = PreparedStatement(
    "issue_claims", f"WITH {_ISSUE} SELECT {_COUNTED} AS counted, {_DOUBTFUL} AS doubtful", **_TYPES
)
_ALL_OF_A_POOL = PreparedStatement(
    "issue_claims_of_a_pool",
    f"WITH {_ISSUE_OF_A_POOL} SELECT {_COUNTED_OF_A_POOL} AS counted, {_DOUBTFUL} AS doubtful",
    **_TYPES,
    values="bigint[]",
)


def issue_all_of(template: Row) -> PreparedStatement:
    """Issues a whole batch: ``counted``, all of it was; ``doubtful``, some of it must not be.

    Prepared, as planning it for each batch took a fifth of PostgreSQL's time.
    """
    return _ALL_OF_A_POOL if has_pool(template) else _ALL
