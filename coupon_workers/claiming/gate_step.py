"""How far the gate has counted what batches give to users: a field of its ``meta`` for each shard, and for each
batch of codes, whose uses are numbered.

The steps of a shard move it (``lua/count_takers.lua``); a preheat, which counts all coupons of the database while no
step can be taken, writes down how far that was.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, text

KEPT = timedelta(hours=1)
"""How long after a batch has ended the gate knows what was counted: a worker that was stopped between the commit of a
step and its counting may go on so late, when the sweep has long had another count for it."""

_CURSORS = text(
    "SELECT s.batch_id, s.shard, s.cursor FROM issue_shard s JOIN issue_batch b USING (batch_id)"
    " WHERE b.template_id = :template_id AND s.cursor > 0"
    "   AND (b.status IN ('running', 'paused') OR s.cursor > s.gate_cursor OR b.finished_at > now() - :kept)"
    " UNION ALL "
    # Of codes for ever: a template has few batches of them, and their owners may come late.
    "SELECT code_batch_id, 0, used_count FROM code_batch WHERE template_id = :template_id AND used_count > 0"
)


def step_field(batch_id: int, shard: int) -> str:
    """The field that says up to which member a shard was counted."""
    return f"step:{batch_id}.{shard}"


def steps_counted(connection: Connection, template_id: int) -> list[str | int]:
    """How far shards have come that may go on, are not known counted, or ended lately: pairs for ``meta``, flat."""
    rows = connection.execute(_CURSORS, {"template_id": template_id, "kept": KEPT})
    return [part for row in rows for part in (step_field(row.batch_id, row.shard), row.cursor)]
