"""DESIGN 11: a batch's counts are those of its codes, and a used code has one coupon, and that one code."""

from __future__ import annotations

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "code_books"

# Uses are numbered without a gap: the gate counts by their numbers. A batch that stopped early has fewer codes.
_DIFFERENT = """
    SELECT b.code_batch_id, b.status, b.quantity, b.generated_count, b.used_count, b.left_quantity,
           coalesce(c.stored, 0) AS stored, coalesce(c.used, 0) AS used, coalesce(c.last_use, 0) AS last_use
      FROM code_batch b
      FULL JOIN (SELECT code_batch_id, count(*) AS stored, count(use_no) AS used, max(use_no) AS last_use
                   FROM code GROUP BY code_batch_id) AS c USING (code_batch_id)
     WHERE b.status IS NULL
        OR b.generated_count <> coalesce(c.stored, 0)
        OR b.used_count <> coalesce(c.used, 0)
        OR b.used_count <> coalesce(c.last_use, 0)
        OR b.left_quantity <> CASE WHEN b.status IN ('generating', 'done') THEN b.quantity - b.used_count ELSE 0 END
        OR (b.status = 'done' AND b.generated_count <> b.quantity)
     ORDER BY code_batch_id LIMIT :breach_limit
"""

# Plain texts are kept for exactly the codes that are stored and were not fetched.
_TEXTS = """
    SELECT code_batch_id, b.export, b.status, coalesce(p.parts, 0) AS parts
      FROM code_batch b
      FULL JOIN (SELECT code_batch_id, count(*) AS parts, max(part_no) AS last FROM code_export_part
                  GROUP BY code_batch_id) AS p USING (code_batch_id)
     WHERE coalesce(p.parts, 0) <> coalesce(p.last, 0)
        OR (b.export = 'kept' AND b.generated_count > 0) <> (coalesce(p.parts, 0) > 0)
     ORDER BY code_batch_id LIMIT :breach_limit
"""

_UNPAIRED = """
    SELECT coupon_id, d.user_id AS of_code, p.user_id AS of_coupon, d.batch_no AS batch_of_code,
           p.batch_no AS batch_of_coupon
      FROM (SELECT c.coupon_id, c.user_id, CAST(c.code_batch_id AS text) AS batch_no, b.template_id
              FROM code c JOIN code_batch b USING (code_batch_id) WHERE c.coupon_id IS NOT NULL) AS d
      FULL JOIN (SELECT coupon_id, user_id, batch_no, template_id FROM coupon WHERE source = 'code'
                  UNION ALL
                 SELECT coupon_id, user_id, batch_no, template_id FROM coupon_archive WHERE source = 'code') AS p
           USING (coupon_id)
     WHERE (d.user_id, d.batch_no, d.template_id) IS DISTINCT FROM (p.user_id, p.batch_no, p.template_id)
     ORDER BY coupon_id LIMIT :breach_limit
"""


def code_books(services: Services) -> list[Breach]:
    """Batches whose counts or plain texts are not those of their codes; used codes without their coupon, and coupons
    without their code."""
    return [*_batches(services), *_texts(services), *_unpaired(services)][:BREACH_LIMIT]


def _batches(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"code batch {row.code_batch_id}",
            f"{row.stored} codes, {row.used} used, the last of them use {row.last_use}",
            f"{row.generated_count} of {row.quantity}, {row.used_count} used, {row.left_quantity} units left,"
            f" {row.status}",
        )
        for row in rows(services, _DIFFERENT)
    ]


def _texts(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"code batch {row.code_batch_id}",
            "plain texts without a gap while they are kept, and none then",
            f"{row.parts} parts, export {row.export}, {row.status}",
        )
        for row in rows(services, _TEXTS)
    ]


def _unpaired(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"coupon {row.coupon_id}",
            f"of a code of batch {row.batch_of_code} that user {row.of_code} has used",
            f"of user {row.of_coupon}, batch {row.batch_of_coupon}",
        )
        for row in rows(services, _UNPAIRED)
    ]
