"""Who holds units of a template beside its stock: said once, for all who compare.

A claim that is held for review holds one. A new holder is one more branch of ``HOLDERS``, and one more source in
``coupons/source_sql.py``.
"""

from __future__ import annotations

HOLDERS = """
    SELECT template_id, CASE WHEN status IN ('running', 'paused') THEN left_quantity ELSE 0 END AS kept,
           left_quantity AS has_left,
           CASE WHEN status IN ('running', 'paused') THEN reserved_quantity - issued_count ELSE 0 END AS due,
           issued_count AS given
      FROM issue_batch
     UNION ALL
    SELECT template_id, CASE WHEN status IN ('generating', 'done') THEN left_quantity ELSE 0 END, left_quantity,
           CASE WHEN status IN ('generating', 'done') THEN quantity - used_count ELSE 0 END, used_count
      FROM code_batch
     UNION ALL
    SELECT p.template_id, CASE WHEN l.status <> 'ended' THEN p.left_quantity ELSE 0 END, p.left_quantity,
           CASE WHEN l.status <> 'ended' THEN p.stock - p.drawn_count ELSE 0 END, p.drawn_count
      FROM prize p JOIN lottery l USING (lottery_id) WHERE p.template_id IS NOT NULL
     UNION ALL
    SELECT template_id, 1, 1, 1, 0 FROM risk_review WHERE state = 'held'"""
"""Of each holder the units that are rightly set aside for it (``kept``), what its row says is left (``has_left``) and
what follows from what it got and gave (``due``), and what it has given."""
