"""One step of a shard: the next users of it, in one transaction with its cursor (DESIGN 9).

A step that is repeated, or taken by two workers, finds the cursor moved and does nothing. Steps of a template and its
settling take turns by the settling's lock, so that a user's limit cannot be passed by both at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from coupon_workers.campaigns.batch import BatchStatus, Row, batch_no
from coupon_workers.campaigns.gate_count import count_step
from coupon_workers.claiming.turn import wait_for_turn
from coupon_workers.coupons.partition_sql import PARTITION
from coupon_workers.coupons.source_sql import COUNTED
from coupon_workers.coupons.wallet_note import noted
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.prepared_statement import PreparedStatement
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import ROUTES, of_every_route
from coupon_workers.templates.validity_batch import windows_ms
from coupon_workers.wallet.stale_wallet import forget_stale_wallets

CHUNK = 2_000
"""Users in a transaction: a few hundredths of a second, in which claims of the template wait to be settled."""

_STATE = text(
    """
    SELECT b.status, b.left_quantity, s.cursor, s.member_count, t.template_id, t.version, t.validity, t.timezone,
           t.notify, t.per_user_limit, t.per_user_daily_limit,
           EXISTS (SELECT FROM webhook w WHERE w.disabled_at IS NULL) AS hooked
      FROM issue_shard s JOIN issue_batch b USING (batch_id) JOIN coupon_template t USING (template_id)
     WHERE s.batch_id = :batch_id AND s.shard = :shard FOR NO KEY UPDATE OF s SKIP LOCKED
    """
)
_LEFT = text(
    "SELECT left_quantity FROM issue_batch WHERE batch_id = :batch_id AND status = 'running' FOR NO KEY UPDATE"
)

# "+ 0" as in settling: of a new template the statistics know nothing. User by user: of a join the plan that is kept for
# a table of one page may be one that costs more than all the rest.
_HELD = f"""SELECT count(*) AS coupons,
                  count(*) FILTER (WHERE CAST(c.claimed_at AT TIME ZONE :timezone AS date)
                                         = CAST(:now AT TIME ZONE :timezone AS date)) AS today
             FROM coupon c
            WHERE c.user_id = n.user_id AND c.template_id + 0 = :template_id
              AND {COUNTED}"""
_NOTHING = "SELECT 0 AS coupons, 0 AS today WHERE :timezone <> ''"
"""A template without limits asks for nobody's coupons."""

_STEP = f"""
    WITH next AS (
        SELECT member_no, user_id, row_no FROM audience_member
         WHERE batch_id = :batch_id AND shard = :shard AND member_no > :cursor ORDER BY member_no LIMIT :chunk
    ), judged AS (
        SELECT n.member_no, n.user_id, n.row_no,
               CASE WHEN h.coupons >= :user_limit THEN 'LIMIT_REACHED'
                    WHEN h.today >= :daily_limit THEN 'DAILY_LIMIT_REACHED' END AS reason
          FROM next n CROSS JOIN LATERAL (HELD) AS h
    ), allowed AS (
        SELECT member_no, user_id, row_no, row_number() OVER (ORDER BY member_no) AS nth
          FROM judged WHERE reason IS NULL
    ), issued AS (
        INSERT INTO coupon (user_id, coupon_id, template_id, batch_no, claim_seq, request_id, template_version,
                            valid_from, valid_to, source, claimed_at, issued_at)
        SELECT user_id, (:coupon_ids)[nth], :template_id, :batch_no, 1, :request_id, :version,
               timestamptz 'epoch' + :from_ms * interval '1 ms', timestamptz 'epoch' + :to_ms * interval '1 ms',
               'batch', :now, :now
          FROM allowed WHERE nth <= :left ORDER BY PARTITION, nth
        RETURNING user_id, coupon_id
    ), flow AS (
        INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, request_id, at)
        SELECT user_id, coupon_id, 1, 'issue', 'unused', 'batch', :batch_no, :now FROM issued
    ),{noted("issued")}, told AS (
        INSERT INTO outbox (event, user_id, template_id, coupon_id, created_at)
        SELECT 'coupon.issued', user_id, :template_id, coupon_id, :now FROM issued WHERE :heard
    ), refused AS (
        INSERT INTO batch_failure (batch_id, row_no, value, reason)
        SELECT :batch_id, row_no, user_id, reason FROM judged WHERE reason IS NOT NULL
        UNION ALL
        SELECT :batch_id, row_no, user_id, 'SOLD_OUT' FROM allowed WHERE nth > :left
        RETURNING 1
    ), counts AS (
        SELECT (SELECT count(*) FROM issued) AS issued, (SELECT count(*) FROM refused) AS refused,
               (SELECT max(member_no) FROM next) AS cursor
    ), shard AS (
        UPDATE issue_shard s SET cursor = counts.cursor, updated_at = :now
          FROM counts WHERE s.batch_id = :batch_id AND s.shard = :shard AND s.cursor = :cursor
        RETURNING 1
    ), batch AS (
        UPDATE issue_batch b
           SET issued_count = issued_count + counts.issued, refused_count = refused_count + counts.refused,
               left_quantity = left_quantity - counts.issued, updated_at = :now
          FROM counts WHERE b.batch_id = :batch_id AND b.status = 'running' AND b.left_quantity = :left
        RETURNING 1
    ), books AS (
        UPDATE coupon_template t
           SET issued_quantity = issued_quantity + counts.issued,
               reserved_quantity = reserved_quantity - counts.issued,
               granted_quantity = granted_quantity + counts.issued
          FROM counts WHERE t.template_id = :template_id AND t.status NOT IN ('paused', 'offline', 'archived')
        RETURNING 1
    )
    SELECT issued, refused, cursor, (SELECT count(*) FROM shard) AS moved, (SELECT count(*) FROM batch) AS running,
           (SELECT count(*) FROM books) AS booked,
           ARRAY(SELECT member_no FROM allowed WHERE nth <= :left ORDER BY nth) AS members,
           ARRAY(SELECT user_id FROM allowed WHERE nth <= :left ORDER BY nth) AS users
      FROM counts
    """

_TYPES = {
    "batch_id": "bigint",
    "shard": "smallint",
    "cursor": "integer",
    "chunk": "integer",
    "template_id": "bigint",
    "version": "bigint",
    "timezone": "text",
    "user_limit": "bigint",
    "daily_limit": "bigint",
    "coupon_ids": "bigint[]",
    "batch_no": "text",
    "request_id": "text",
    "from_ms": "bigint",
    "to_ms": "bigint",
    "heard": "boolean",
    "left": "bigint",
    "now": "timestamptz",
}
_SQL = _STEP.replace("PARTITION", PARTITION)
_CAREFUL = PreparedStatement("issue_with_care", _SQL.replace("HELD", _HELD), **_TYPES)
_FAST = PreparedStatement("issue_fast", _SQL.replace("HELD", _NOTHING), **_TYPES)


@dataclass(frozen=True, slots=True)
class Step:
    """What a step has done: the shard stands at ``cursor`` and has ``left`` users; with none all is counted too."""

    issued: int
    refused: int
    cursor: int
    left: int

    @property
    def through(self) -> bool:
        """Nothing is left to do."""
        return not self.left


def issue_chunk(services: Services, batch_id: int, shard: int, cursor: int, *, chunk: int = CHUNK) -> Step | None:
    """Issue the next ``chunk`` users of a shard that stands at ``cursor``, and have the gate count them.

    None when it is not this step's turn: another worker has the shard or has moved it, the batch does not run, or the
    template is stopped or busy. Raises ``StoreUnavailable``: what was committed stays, and the next step counts it.
    """
    with database_errors(), services.engine.connect() as connection, connection.begin() as work:
        state = _state(connection, batch_id, shard)
        if state is None or (state["cursor"], state["status"]) != (cursor, BatchStatus.RUNNING):
            return None
        now, issued, counts = services.clock(), [], (0, 0, cursor)
        if cursor < state["member_count"]:
            written = _write(services, connection, batch_id, shard, state, chunk, now)
            if written is None:
                work.rollback()
                return None
            issued = list(zip(written["members"], written["users"], strict=True))
            counts = (written["issued"], written["refused"], written["cursor"])
        crash_point("campaign.before_commit")
    crash_point("campaign.after_commit")
    forget_stale_wallets(services, [user for _, user in issued])
    count_step(services, state, batch_id, shard, (cursor, counts[2]), (issued, now))
    crash_point("campaign.after_count")
    return Step(*counts, left=state["member_count"] - counts[2])


def _state(connection: Connection, batch_id: int, shard: int) -> Row | None:
    row = connection.execute(_STATE, {"batch_id": batch_id, "shard": shard}).mappings().first()
    return None if row is None else dict(row)


def _write(
    services: Services, connection: Connection, batch_id: int, shard: int, state: Row, chunk: int, now: datetime
) -> Row | None:
    """What was written; None when the template is busy, or the batch or its template stopped meanwhile."""
    if not wait_for_turn(connection, state["template_id"], 0):
        return None
    # Under the turn: another shard's step may have used up what was left. Held, so that no cancel comes in between,
    # whose units the statement would then take from the template's books again.
    left = connection.execute(_LEFT, {"batch_id": batch_id}).scalar_one_or_none()
    if left is None:
        return None
    limited = state["per_user_limit"] is not None or state["per_user_daily_limit"] is not None
    [(from_ms, to_ms_)] = windows_ms(state["validity"], state["timezone"], [to_ms(now)])
    [written] = (_CAREFUL if limited else _FAST).rows(
        connection,
        {
            "batch_id": batch_id,
            "shard": shard,
            "cursor": state["cursor"],
            "chunk": chunk,
            "template_id": state["template_id"],
            "version": state["version"],
            "timezone": state["timezone"],
            "user_limit": state["per_user_limit"],
            "daily_limit": state["per_user_daily_limit"],
            "coupon_ids": _coupon_ids(services, min(chunk, state["member_count"] - state["cursor"])),
            "batch_no": batch_no(batch_id),
            "request_id": f"batch\t{batch_id}",  # no claim's request has a tab in it
            "from_ms": from_ms,
            "to_ms": to_ms_,
            "heard": state["hooked"] or (state["notify"] and bool(services.settings.channels)),
            "left": left,
            "now": now,
        },
    )
    return written if (written["moved"], written["running"], written["booked"]) == (1, 1, 1) else None


def _coupon_ids(services: Services, count: int) -> str:
    """Identities in order, as PostgreSQL spells an array: of a list it would read each as a constant.

    Claims have but 32,000 a second and process. Only who asks for a queued claim goes by the route, and none of these
    is one.
    """
    identities = [one for _ in range(0, count, ROUTES) for one in of_every_route(services.next_id(0))]
    return f"{{{','.join(map(str, sorted(identities)[:count]))}}}"
