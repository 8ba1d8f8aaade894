"""The SQL of settling: set-based, one statement for the common batch, a careful set for the unusual one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection, Engine, text

from coupon_workers.claiming.hold_sql import write_held
from coupon_workers.claiming.issue_sql import Row, has_pool, issue_all_of, issue_of
from coupon_workers.claiming.outcome import HELD
from coupon_workers.claiming.pending import PendingClaim, Poison
from coupon_workers.claiming.turn import settle_lock, wait_for_turn
from coupon_workers.claiming.verdict import Books, Verdict
from coupon_workers.coupons.source_sql import COUNTED
from coupon_workers.pools.pool_store import count_left, draw_left
from coupon_workers.runtime.array_literal import numbers, texts
from coupon_workers.runtime.database import transaction
from coupon_workers.templates.validity_batch import windows_ms

_TEMPLATE = text(
    """
    SELECT pg_try_advisory_xact_lock(:lock) AS locked, template_id, type, status, version, pause_epoch, per_user_limit,
           per_user_daily_limit, timezone, validity, rejected_quantity, reserved_quantity - held_quantity AS given_away,
           held_quantity, archived_quantity, risk_policy
      FROM coupon_template WHERE template_id = :template_id
    """
)

_RESERVED = text("SELECT reserved_quantity > held_quantity FROM coupon_template WHERE template_id = :template_id")


def lock_template(connection: Connection, template_id: int, bucket: int) -> Row | None:
    """The template's row, and whether this transaction now holds the bucket's settling to itself (``locked``).

    Another settling that has it will go on with what is pending. A campaign will not: for its step this waits.
    """
    row = _try_lock(connection, template_id, bucket)
    if row is None or row["locked"] or not row["given_away"] or not wait_for_turn(connection, template_id, bucket):
        return row
    return _try_lock(connection, template_id, bucket)


def _try_lock(connection: Connection, template_id: int, bucket: int) -> Row | None:
    row = connection.execute(_TEMPLATE, {"lock": settle_lock(template_id, bucket), "template_id": template_id})
    found = row.mappings().first()
    return dict(found) if found else None


def gives_away(engine: Engine, template_id: int) -> bool:
    """Whether a campaign has units of the template set aside. Raises ``StoreUnavailable``."""
    with transaction(engine) as connection:
        reserved = connection.scalar(_RESERVED, {"template_id": template_id})
    return bool(reserved)


def issue_all(connection: Connection, template: Row, claims: Sequence[PendingClaim]) -> bool:
    """Issue the whole batch in one statement, as it is in the common case.

    False when a claim met a limit, an earlier answer, the end of the stock or a face value that is gone, or the
    template was paused since it was read, or when part of what its users had lies in the archive: the caller must roll
    back. Raises ``IntegrityError`` when the database knows a claim already. Claims are inserted plainly: ON CONFLICT
    would look into every unique index twice, for the sake of the rare batch that comes again.
    """
    if template["archived_quantity"] or (has_pool(template) and any(claim.face_value is None for claim in claims)):
        return False
    [result] = issue_all_of(template).rows(connection, _arguments(template, claims))
    return bool(result["counted"]) and not result["doubtful"]


def _arguments(
    template: Row,
    claims: Sequence[PendingClaim],
    seqs: Sequence[int] | None = None,
    values: Sequence[int | None] | None = None,
) -> Row:
    windows = windows_ms(template["validity"], template["timezone"], [claim.claimed_at_ms for claim in claims])
    drawn = {"values": numbers(values or (claim.face_value for claim in claims))} if has_pool(template) else {}
    return drawn | {
        "template_id": template["template_id"],
        "version": template["version"],
        "pause_epoch": template["pause_epoch"],
        "rejected_quantity": template["rejected_quantity"],
        "held_quantity": template["held_quantity"],
        "user_limit": template["per_user_limit"],
        "daily_limit": template["per_user_daily_limit"],
        "timezone": template["timezone"],
        "claim_ids": numbers(claim.claim_id for claim in claims),
        "users": texts(claim.user_id for claim in claims),
        "requests": texts(claim.request_id for claim in claims),
        "seqs": numbers(seqs or (claim.claim_seq for claim in claims)),
        "channels": texts(claim.channel or "" for claim in claims),
        "claimed": numbers(claim.claimed_at_ms for claim in claims),
        "froms": numbers(window[0] for window in windows),
        "tos": numbers(window[1] for window in windows),
    }


def hold_template(connection: Connection, template: Row) -> Row:
    """The template as it is now, held by this transaction: no pause and no other settling comes between."""
    held = connection.execute(
        text(
            "SELECT status, pause_epoch, rejected_quantity, held_quantity, per_user_limit, per_user_daily_limit,"
            " total_quantity - reserved_quantity - issued_quantity AS room"
            " FROM coupon_template WHERE template_id = :template_id FOR UPDATE"
        ),
        {"template_id": template["template_id"]},
    )
    return template | dict(held.mappings().one())


_COUPONS_OF = (
    "SELECT user_id, request_id, coupon_id, claim_seq,"
    " CAST(claimed_at AT TIME ZONE :timezone AS date) - date '1970-01-01' AS day FROM {}"
    " WHERE template_id + 0 = :template_id AND user_id = ANY(CAST(:users AS text[]))"
    f" AND {COUNTED}"
)
_HELD = text(f"{_COUPONS_OF.format('coupon')} UNION ALL {_COUPONS_OF.format('coupon_archive')}")

_IN_REVIEW = text(
    "SELECT user_id, request_id, claim_id, claim_seq, day FROM risk_review"
    " WHERE template_id = :template_id AND user_id = ANY(CAST(:users AS text[])) AND state = 'held'"
)


def read_books(connection: Connection, template: Row, claims: Sequence[PendingClaim]) -> Books:
    """What the database knows of these claims' users and requests; ``template`` is held by this transaction."""
    key = {
        "template_id": template["template_id"],
        "users": texts({claim.user_id for claim in claims}),
        "timezone": template["timezone"],
    }
    books = Books(
        template["room"],
        template["status"],
        template["pause_epoch"],
        template["per_user_limit"],
        template["per_user_daily_limit"],
    )
    if has_pool(template):
        drawn = {claim.face_value for claim in claims if claim.face_value is not None}
        books.values_left = count_left(connection, template["template_id"], sorted(drawn))
    for coupon in connection.execute(_HELD, key):
        books.held[coupon.user_id] += 1
        books.held_on_day[coupon.user_id, str(coupon.day)] += 1
        books.answered[coupon.user_id, coupon.request_id] = (coupon.coupon_id, None)
        _note_seq(books, coupon.user_id, coupon.claim_seq)
    for review in connection.execute(_IN_REVIEW, key):
        books.held[review.user_id] += 1
        books.held_on_day[review.user_id, review.day] += 1
        books.answered.setdefault((review.user_id, review.request_id), (review.claim_id, HELD))
        _note_seq(books, review.user_id, review.claim_seq)
    rejections = connection.execute(
        text(
            "SELECT user_id, request_id, claim_id, claim_seq, reason FROM claim_rejection"
            " WHERE template_id = :template_id AND user_id = ANY(CAST(:users AS text[])) ORDER BY claim_id"
        ),
        key,
    )
    for rejection in rejections:
        first = books.answered.setdefault(
            (rejection.user_id, rejection.request_id), (rejection.claim_id, rejection.reason)
        )
        if first[0] != rejection.claim_id:
            books.duplicates.add(rejection.claim_id)
        _note_seq(books, rejection.user_id, rejection.claim_seq)
    return books


def _note_seq(books: Books, user_id: str, seq: int) -> None:
    books.taken_seqs.add((user_id, seq))
    books.last_seq[user_id] = max(seq, books.last_seq.get(user_id, 0))


def write_verdicts(connection: Connection, template: Row, verdicts: Sequence[Verdict]) -> dict[int, int]:
    """Write what is new of the verdicts: coupons with flow and outbox rows, rejections with theirs, claims
    held for review, the counters.

    Returns what was drawn from the pool for claims of which the value was gone, by claim id.
    """
    redrawn: dict[int, int] = {}
    issued = [verdict for verdict in verdicts if verdict.new and verdict.reason is None]
    held = [verdict for verdict in verdicts if verdict.new and verdict.reason == HELD]
    rejected = [verdict for verdict in verdicts if verdict.new and verdict.reason not in (None, HELD)]
    if issued:
        issue, counted = issue_of(template)
        statement = text(f"WITH {issue} SELECT {counted}")
        redrawn = _redraw(connection, template, issued)
        values = [redrawn.get(v.claim.claim_id, v.claim.face_value) for v in issued]
        arguments = _arguments(template, [v.claim for v in issued], [v.claim_seq for v in issued], values)
        if not connection.scalar(statement, arguments):
            raise AssertionError("the stock changed under the template's lock")
    if held:
        write_held(connection, template, held)
    if rejected:
        _write_rejections(connection, template, rejected)
    return redrawn


def _redraw(connection: Connection, template: Row, issued: Sequence[Verdict]) -> dict[int, int]:
    """What is drawn, by claim id, of what the others of the batch leave in the pool."""
    gone = [verdict.claim.claim_id for verdict in issued if verdict.redraw]
    if not gone:
        return {}
    kept = Counter(v.claim.face_value for v in issued if not v.redraw and v.claim.face_value is not None)
    return dict(zip(gone, draw_left(connection, template["template_id"], len(gone), kept), strict=True))


def _write_rejections(connection: Connection, template: Row, verdicts: Sequence[Verdict]) -> None:
    connection.execute(
        text(
            """
            WITH rejected AS (
                INSERT INTO claim_rejection (claim_id, user_id, template_id, request_id, claim_seq, reason, claimed_at)
                SELECT claim_id, user_id, :template_id, request_id, claim_seq, reason,
                       timestamptz 'epoch' + claimed_ms * interval '1 ms'
                  FROM unnest(CAST(:claim_ids AS bigint[]), CAST(:users AS text[]), CAST(:requests AS text[]),
                              CAST(:seqs AS bigint[]), CAST(:reasons AS text[]), CAST(:claimed AS bigint[]))
                    AS e(claim_id, user_id, request_id, claim_seq, reason, claimed_ms)
                RETURNING claim_id, user_id, reason
            ), told AS (
                INSERT INTO outbox (event, user_id, template_id, coupon_id, detail)
                SELECT 'claim.rejected', user_id, :template_id, claim_id, jsonb_build_object('reason', reason)
                  FROM rejected
            )
            UPDATE coupon_template SET rejected_quantity = rejected_quantity + (SELECT count(*) FROM rejected)
             WHERE template_id = :template_id
            """
        ),
        {
            "template_id": template["template_id"],
            "claim_ids": numbers(v.claim.claim_id for v in verdicts),
            "users": texts(v.claim.user_id for v in verdicts),
            "requests": texts(v.claim.request_id for v in verdicts),
            "seqs": numbers(v.claim.claim_seq for v in verdicts),
            "reasons": texts(str(v.reason) for v in verdicts),
            "claimed": numbers(v.claim.claimed_at_ms for v in verdicts),
        },
    )


def set_aside(connection: Connection, template_id: int, bucket: int, poison: Sequence[Poison]) -> None:
    """Keep entries that no claim can be read from, with the reason; a second time changes nothing."""
    connection.execute(
        text(
            "INSERT INTO claim_set_aside (template_id, bucket, entry_id, payload, reason)"
            " VALUES (:template_id, :bucket, :entry_id, :payload, :reason) ON CONFLICT DO NOTHING"
        ),
        [
            {
                "template_id": template_id,
                "bucket": bucket,
                "entry_id": entry.entry_id,
                "payload": entry.payload.replace("\x00", "\\0"),
                "reason": entry.reason.replace("\x00", "\\0"),
            }
            for entry in poison
        ],
    )
