"""DESIGN 9: a batch's rows add up, its counts are those of its rows, and its units are in its template's books."""

from __future__ import annotations

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

RULE = "batch_books"

# Whoever got a coupon or was refused stands before his shard's cursor. What ended keeps nothing. Refusals are forgotten
# long after a batch's end.
_DIFFERENT = """
    SELECT b.batch_id, b.status, b.issued_count, b.refused_count, b.left_quantity, b.reserved_quantity, b.row_count,
           b.invalid_count + b.duplicate_count + b.audience_count AS rows,
           b.audience_count, coalesce(s.members, 0) AS members, coalesce(s.moved, 0) AS moved,
           coalesce(c.issued, 0) + b.archived_count AS issued, coalesce(f.refused, 0) AS refused
      FROM issue_batch b
      LEFT JOIN (SELECT batch_no, count(*) AS issued FROM coupon WHERE source = 'batch' GROUP BY batch_no) AS c
           ON c.batch_no = CAST(b.batch_id AS text)
      LEFT JOIN (SELECT batch_id, count(*) AS refused FROM batch_failure
                  WHERE reason NOT IN ('INVALID', 'DUPLICATE') GROUP BY batch_id) AS f USING (batch_id)
      LEFT JOIN (SELECT batch_id, sum(member_count) AS members, sum(cursor) AS moved FROM issue_shard
                  GROUP BY batch_id) AS s USING (batch_id)
     WHERE b.issued_count <> coalesce(c.issued, 0) + b.archived_count
        OR (b.records = 'kept' AND b.refused_count <> coalesce(f.refused, 0))
        OR b.issued_count + b.refused_count <> coalesce(s.moved, 0)
        OR b.audience_count <> coalesce(s.members, 0)
        OR b.row_count <> b.invalid_count + b.duplicate_count + b.audience_count
        OR b.left_quantity <> CASE WHEN b.status IN ('running', 'paused') THEN b.reserved_quantity - b.issued_count
                                   ELSE 0 END
        OR (b.status = 'done' AND b.issued_count + b.refused_count <> b.audience_count)
     ORDER BY b.batch_id LIMIT :breach_limit
"""

_OF_TEMPLATES = """
    SELECT t.template_id, t.reserved_quantity, t.held_quantity, t.granted_quantity, coalesce(r.held, 0) AS held,
           coalesce(b.kept, 0) AS kept, coalesce(c.granted, 0) + t.archived_granted_quantity AS granted
      FROM coupon_template t
      LEFT JOIN (SELECT template_id, sum(kept) AS kept
                   FROM (SELECT template_id, left_quantity FROM issue_batch WHERE status IN ('running', 'paused')
                          UNION ALL
                         SELECT template_id, left_quantity FROM code_batch
                          UNION ALL
                         SELECT template_id, left_quantity FROM prize WHERE template_id IS NOT NULL
                          UNION ALL
                         SELECT template_id, 1 FROM risk_review WHERE state = 'held') AS holder(template_id, kept)
                  GROUP BY template_id) AS b USING (template_id)
      LEFT JOIN (SELECT template_id, count(*) AS granted FROM coupon
                  WHERE source IN ('batch', 'code', 'lottery', 'manual')
                  GROUP BY template_id) AS c USING (template_id)
      LEFT JOIN (SELECT template_id, count(*) AS held FROM risk_review WHERE state = 'held'
                  GROUP BY template_id) AS r USING (template_id)
     WHERE t.reserved_quantity <> coalesce(b.kept, 0)
        OR t.held_quantity <> coalesce(r.held, 0)
        OR t.granted_quantity <> coalesce(c.granted, 0) + t.archived_granted_quantity
     ORDER BY t.template_id LIMIT :breach_limit
"""

_OF_NO_BATCH = """
    SELECT c.batch_no, c.coupons, c.template_id, b.template_id AS of_batch
      FROM (SELECT batch_no, template_id, count(*) AS coupons FROM coupon WHERE source = 'batch'
             GROUP BY batch_no, template_id) AS c
      LEFT JOIN issue_batch b ON CAST(b.batch_id AS text) = c.batch_no
     WHERE b.template_id IS DISTINCT FROM c.template_id
     ORDER BY c.batch_no, c.template_id LIMIT :breach_limit
"""


def batch_books(services: Services) -> list[Breach]:
    """Batches whose counts are not those of their rows, coupons of no batch, and templates whose books of batches, of
    users, of codes or of prizes, differ from what these keep and have given."""
    return [*_batches(services), *_templates(services), *_strays(services)][:BREACH_LIMIT]


def _batches(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"batch {row.batch_id}",
            f"{row.issued} issued + {row.refused} refused = {row.moved} of {row.members} members, of {row.rows} rows",
            f"{row.issued_count} + {row.refused_count} of {row.audience_count}, of {row.row_count}, {row.status} with"
            f" {row.left_quantity} left of {row.reserved_quantity}",
        )
        for row in rows(services, _DIFFERENT)
    ]


def _templates(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"template {row.template_id}",
            f"{row.kept} kept, {row.held} of them for review, and {row.granted} given by its batches, codes and prizes",
            f"reserved_quantity {row.reserved_quantity}, held_quantity {row.held_quantity},"
            f" granted_quantity {row.granted_quantity}",
        )
        for row in rows(services, _OF_TEMPLATES)
    ]


def _strays(services: Services) -> list[Breach]:
    return [
        Breach(
            RULE,
            f"batch {row.batch_no} template {row.template_id}",
            f"coupons of template {row.of_batch}" if row.of_batch else "no coupons, as there is no such batch",
            f"{row.coupons} coupons",
        )
        for row in rows(services, _OF_NO_BATCH)
    ]
