"""Entries that were set aside are forgotten by their age, which an index serves."""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Index their instant."""
    op.execute("CREATE INDEX ix_claim_set_aside_at ON claim_set_aside (at)")


def downgrade() -> None:
    """None is forgotten."""
    op.execute("DROP INDEX ix_claim_set_aside_at")
