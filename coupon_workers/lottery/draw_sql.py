"""The SQL of settling draws: what the books say of a batch, and the one statement that writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.coupons.wallet_note import noted
from coupon_workers.lottery.draw_verdict import Answered, Books, Verdict
from coupon_workers.lottery.lottery import Row
from coupon_workers.lottery.pending_draw import PendingDraw
from coupon_workers.templates.validity_batch import windows_ms

REQUEST_PREFIX = "draw\t"
"""Before the draw's number, the coupon's ``request_id``. No claim's has a tab in it."""

_ANSWERED = text(
    """
    SELECT d.draw_id, d.user_id, d.request_id, d.prize_no, d.reason
      FROM unnest(CAST(:users AS text[]), CAST(:requests AS text[])) AS e(user_id, request_id)
      JOIN draw d ON d.lottery_id = :lottery_id AND d.user_id = e.user_id AND d.request_id = e.request_id
     WHERE d.reason IS DISTINCT FROM 'DUPLICATE'
    """
)
_DUPLICATES = text(
    "SELECT draw_id FROM draw WHERE lottery_id = :lottery_id AND draw_id = ANY(CAST(:draw_ids AS bigint[]))"
    " AND reason = 'DUPLICATE'"
)
_DRAWN = text(
    """
    SELECT d.user_id, CAST(d.drawn_at AT TIME ZONE :timezone AS date) - date '1970-01-01' AS day, count(*) AS draws
      FROM draw d
     WHERE d.lottery_id = :lottery_id AND d.user_id = ANY(CAST(:users AS text[]))
       AND d.reason IS NULL AND d.reason IS DISTINCT FROM 'DUPLICATE'
     GROUP BY 1, 2
    """
)
# In order of their numbers, as everywhere that holds several.
_TEMPLATES = text(
    "SELECT template_id, version, validity, timezone FROM coupon_template"
    " WHERE template_id = ANY(CAST(:template_ids AS bigint[])) ORDER BY template_id FOR NO KEY UPDATE"
)
# The number of a draw is its coupon's number, and the place among the user's coupons of the lottery: never used twice.
_WRITE = text(
    f"""
    WITH entry AS (
        SELECT draw_id, user_id, request_id, prize_no, NULLIF(reason, '') AS reason,
               NULLIF(template_id, 0) AS template_id, version,
               timestamptz 'epoch' + drawn_ms * interval '1 ms' AS drawn_at,
               timestamptz 'epoch' + from_ms * interval '1 ms' AS valid_from,
               timestamptz 'epoch' + to_ms * interval '1 ms' AS valid_to
          FROM unnest(CAST(:draw_ids AS bigint[]), CAST(:users AS text[]), CAST(:requests AS text[]),
                      CAST(:prize_nos AS smallint[]), CAST(:reasons AS text[]), CAST(:drawn AS bigint[]),
                      CAST(:of_templates AS bigint[]), CAST(:versions AS bigint[]), CAST(:froms AS bigint[]),
                      CAST(:tos AS bigint[]))
            AS e(draw_id, user_id, request_id, prize_no, reason, drawn_ms, template_id, version, from_ms, to_ms)
    ), drawn AS (
        INSERT INTO draw (lottery_id, draw_id, user_id, request_id, prize_no, reason, coupon_id, drawn_at)
        SELECT :lottery_id, draw_id, user_id, request_id, prize_no, reason,
               CASE WHEN template_id IS NOT NULL THEN draw_id END, drawn_at
          FROM entry
        RETURNING prize_no, reason
    ), issued AS (
        INSERT INTO coupon (user_id, coupon_id, template_id, batch_no, claim_seq, request_id, template_version,
                            valid_from, valid_to, source, claimed_at)
        SELECT user_id, draw_id, template_id, :batch_no, draw_id, '{REQUEST_PREFIX}' || draw_id, version, valid_from,
               valid_to, 'lottery', drawn_at
          FROM entry WHERE template_id IS NOT NULL
        RETURNING user_id, coupon_id, template_id, request_id
    ), flow AS (
        INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, request_id)
        SELECT user_id, coupon_id, 1, 'issue', 'unused', 'draw', request_id FROM issued
    ),{noted("issued")}, told AS (
        INSERT INTO outbox (event, user_id, template_id, coupon_id)
        SELECT 'coupon.issued', user_id, template_id, coupon_id FROM issued
    ), books AS (
        UPDATE coupon_template t
           SET issued_quantity = issued_quantity + g.n, reserved_quantity = reserved_quantity - g.n,
               granted_quantity = granted_quantity + g.n
          FROM (SELECT template_id, count(*) AS n FROM issued GROUP BY template_id) AS g
         WHERE t.template_id = g.template_id
    ), won AS (
        UPDATE prize p SET drawn_count = drawn_count + w.n, left_quantity = left_quantity - w.n
          FROM (SELECT prize_no, count(*) AS n FROM drawn WHERE reason IS NULL AND prize_no > 0 GROUP BY prize_no) AS w
         WHERE p.lottery_id = :lottery_id AND p.prize_no = w.prize_no
    )
    UPDATE lottery
       SET draw_count = draw_count + (SELECT count(*) FROM drawn WHERE reason IS NULL),
           none_count = none_count + (SELECT count(*) FROM drawn WHERE reason IS NULL AND prize_no = 0),
           rejected_count = rejected_count + (SELECT count(*) FROM drawn WHERE reason IS NOT NULL)
     WHERE lottery_id = :lottery_id
    """
)


def read_books(connection: Connection, lottery: Row, prizes: Sequence[Row], draws: Sequence[PendingDraw]) -> Books:
    """What the database knows of these draws' users and requests; ``lottery`` is held by this transaction."""
    left = Counter({prize["prize_no"]: prize["left_quantity"] for prize in prizes})
    books = Books(lottery["status"] == "ended", lottery["per_user_limit"], lottery["per_user_daily_limit"], left)
    key = {"lottery_id": lottery["lottery_id"], "timezone": lottery["timezone"]}
    asked = {"users": [draw.user_id for draw in draws], "requests": [draw.request_id for draw in draws]}
    for row in connection.execute(_ANSWERED, key | asked):
        books.answered[row.user_id, row.request_id] = Answered(row.draw_id, row.prize_no, row.reason)
    books.duplicates |= set(connection.scalars(_DUPLICATES, key | {"draw_ids": [draw.draw_id for draw in draws]}))
    if books.user_limit is not None or books.daily_limit is not None:
        for row in connection.execute(_DRAWN, key | {"users": list({draw.user_id for draw in draws})}):
            books.drawn[row.user_id] += row.draws
            books.drawn_on_day[row.user_id, str(row.day)] += row.draws
    return books


def write_verdicts(connection: Connection, lottery: Row, prizes: Sequence[Row], verdicts: Sequence[Verdict]) -> None:
    """Write the new ones: draws, and coupons with all that belongs to them, out of the units set aside."""
    new = [verdict for verdict in verdicts if verdict.new]
    if not new:
        return
    template_of = {prize["prize_no"]: prize["template_id"] for prize in prizes}
    coupons = _Coupons(connection, [(v, template_of.get(v.draw.prize_no) if v.wins else None) for v in new])
    connection.execute(
        _WRITE,
        coupons.columns
        | {
            "lottery_id": lottery["lottery_id"],
            "batch_no": str(lottery["lottery_id"]),
            "draw_ids": [v.draw.draw_id for v in new],
            "users": [v.draw.user_id for v in new],
            "requests": [v.draw.request_id for v in new],
            "prize_nos": [v.draw.prize_no for v in new],
            "reasons": [v.reason or "" for v in new],
            "drawn": [v.draw.drawn_at_ms for v in new],
        },
    )


class _Coupons:
    """What the coupons of a batch are of their templates, which are held from here on; zeros where there is none."""

    def __init__(self, connection: Connection, won: Sequence[tuple[Verdict, int | None]]) -> None:
        rows: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)] * len(won)
        for template in _held(connection, {template_id for _, template_id in won if template_id is not None}):
            places = [place for place, (_, template_id) in enumerate(won) if template_id == template["template_id"]]
            drawn_ms = [won[place][0].draw.drawn_at_ms for place in places]
            windows = windows_ms(template["validity"], template["timezone"], drawn_ms)
            for place, window in zip(places, windows, strict=True):
                rows[place] = (template["template_id"], template["version"], *window)
        names = ("of_templates", "versions", "froms", "tos")
        self.columns: dict[str, Any] = {name: [row[number] for row in rows] for number, name in enumerate(names)}


def _held(connection: Connection, template_ids: Iterable[int]) -> list[Any]:
    wanted = sorted(template_ids)
    return list(connection.execute(_TEMPLATES, {"template_ids": wanted}).mappings()) if wanted else []
