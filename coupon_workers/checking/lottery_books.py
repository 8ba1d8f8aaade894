"""DESIGN 11: a lottery's counts are those of its draws, and a draw that won a coupon has it, and that one draw."""

from __future__ import annotations

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "lottery_books"

_PRIZES = """
    SELECT p.lottery_id, p.prize_no, p.stock, p.drawn_count, p.left_quantity, coalesce(d.drawn, 0) AS drawn,
           CASE WHEN l.status = 'ended' THEN 0 ELSE p.stock - coalesce(d.drawn, 0) END AS to_be_left
      FROM prize p JOIN lottery l USING (lottery_id)
      LEFT JOIN (SELECT lottery_id, prize_no, count(*) AS drawn FROM draw WHERE reason IS NULL
                  GROUP BY lottery_id, prize_no) AS d USING (lottery_id, prize_no)
     WHERE p.drawn_count <> coalesce(d.drawn, 0) OR coalesce(d.drawn, 0) > p.stock
        OR p.left_quantity <> CASE WHEN l.status = 'ended' THEN 0 ELSE p.stock - coalesce(d.drawn, 0) END
     ORDER BY p.lottery_id, p.prize_no LIMIT :breach_limit
"""
_LOTTERIES = """
    SELECT lottery_id, l.draw_count, l.none_count, l.rejected_count, coalesce(d.draws, 0) AS draws,
           coalesce(d.none, 0) AS none, coalesce(d.rejected, 0) AS rejected, coalesce(p.weight, 0) AS weight
      FROM lottery l
      FULL JOIN (SELECT lottery_id, count(*) FILTER (WHERE reason IS NULL) AS draws,
                        count(*) FILTER (WHERE reason IS NULL AND prize_no = 0) AS none,
                        count(*) FILTER (WHERE reason IS NOT NULL) AS rejected
                   FROM draw GROUP BY lottery_id) AS d USING (lottery_id)
      LEFT JOIN (SELECT lottery_id, sum(weight) AS weight FROM prize GROUP BY lottery_id) AS p USING (lottery_id)
     WHERE l.draw_count IS DISTINCT FROM coalesce(d.draws, 0) OR l.none_count IS DISTINCT FROM coalesce(d.none, 0)
        OR l.rejected_count IS DISTINCT FROM coalesce(d.rejected, 0) OR coalesce(p.weight, 0) <> 1000000
     ORDER BY lottery_id LIMIT :breach_limit
"""
_COUPONS = """
    SELECT coalesce(d.draw_id, c.coupon_id) AS draw_id, coalesce(d.user_id, c.user_id) AS user_id,
           d.draw_id IS NULL AS of_no_draw, c.coupon_id IS NULL AS no_coupon, d.coupon_id AS noted
      FROM (SELECT d.draw_id, d.user_id, d.coupon_id, CAST(d.lottery_id AS text) AS batch_no, p.template_id
              FROM draw d JOIN prize p USING (lottery_id, prize_no)
             WHERE d.coupon_id IS NOT NULL OR (d.reason IS NULL AND p.template_id IS NOT NULL)) AS d
      FULL JOIN (SELECT coupon_id, user_id, batch_no, template_id FROM coupon WHERE source = 'lottery'
                  UNION ALL
                 SELECT coupon_id, user_id, batch_no, template_id FROM coupon_archive WHERE source = 'lottery') AS c
        ON c.coupon_id = d.draw_id AND c.user_id = d.user_id AND c.batch_no = d.batch_no
       AND c.template_id = d.template_id
     WHERE d.draw_id IS NULL OR c.coupon_id IS NULL OR d.coupon_id IS NULL
     ORDER BY 1 LIMIT :breach_limit
"""
_BEYOND_LIMIT = """
    SELECT d.lottery_id, d.user_id, count(*) AS draws, l.per_user_limit AS allowed, NULL AS day
      FROM draw d JOIN lottery l USING (lottery_id) WHERE d.reason IS NULL
     GROUP BY d.lottery_id, d.user_id, l.per_user_limit HAVING count(*) > l.per_user_limit
     UNION ALL
    SELECT d.lottery_id, d.user_id, count(*), l.per_user_daily_limit,
           CAST(CAST(d.drawn_at AT TIME ZONE l.timezone AS date) AS text)
      FROM draw d JOIN lottery l USING (lottery_id)
     WHERE d.reason IS NULL AND l.per_user_daily_limit IS NOT NULL
     GROUP BY d.lottery_id, d.user_id, l.per_user_daily_limit, 5 HAVING count(*) > l.per_user_daily_limit
     ORDER BY 1, 2 LIMIT :breach_limit
"""


def lottery_books(services: Services) -> list[Breach]:
    """Prizes and lotteries whose counts are not those of their draws, weights that are no million, draws without their
    coupon and coupons without their draw, users with more draws than allowed."""
    found = [*_prizes(services), *_lotteries(services), *_coupons(services), *_limits(services)]
    return found[:BREACH_LIMIT]


def _prizes(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"lottery {row.lottery_id} prize {row.prize_no}",
            f"{row.drawn} drawn and {row.to_be_left} left of {row.stock}",
            f"{row.drawn_count} and {row.left_quantity}",
        )
        for row in rows(services, _PRIZES)
    ]


def _lotteries(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"lottery {row.lottery_id}",
            f"{row.draws} draws, {row.none} of them none, {row.rejected} rejected; weights of 1000000",
            f"{row.draw_count}, {row.none_count}, {row.rejected_count}; weights of {row.weight}",
        )
        for row in rows(services, _LOTTERIES)
    ]


def _coupons(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"draw {row.draw_id} user {row.user_id}",
            "a draw that won it" if row.of_no_draw else "the coupon it won",
            "a coupon of no draw" if row.of_no_draw else "no coupon" if row.no_coupon else "a draw without its number",
        )
        for row in rows(services, _COUPONS)
    ]


def _limits(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"lottery {row.lottery_id} user {row.user_id}" + (f" day {row.day}" if row.day else ""),
            f"at most {row.allowed} draws",
            f"{row.draws}",
        )
        for row in rows(services, _BEYOND_LIMIT)
    ]
