"""Which adjustments make up for which kind of finding: each bears its finding's number (``money_repair.py``).

What makes up for a booking that was missing says nothing of the discount, and what corrects the discount says nothing
of bookings: else an order would be adjusted to and fro.
"""

from __future__ import annotations


def books_finding_of(kind: str, entry: str) -> str:
    """SQL: whether ``entry``, a row of ``ledger_entry``, is an adjustment that a finding of ``kind`` led to."""
    return f"""
        ({entry}.kind = 'adjustment' AND EXISTS (
            SELECT FROM recon_finding booked_by
             WHERE booked_by.kind = '{kind}' AND booked_by.user_id = {entry}.user_id
               AND booked_by.finding_id = CASE WHEN {entry}.reference ~ '^finding-[0-9]{{1,18}}(-[0-9]+)?$'
                                               THEN CAST(split_part({entry}.reference, '-', 2) AS bigint) END))"""
