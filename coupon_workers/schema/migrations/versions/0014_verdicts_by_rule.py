"""The log of verdicts is read by rule."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index. Who writes verdicts waits meanwhile: a second for some hundred thousand."""
    op.execute("CREATE INDEX ix_risk_verdict_rule ON risk_verdict (rule, verdict_id)")


def downgrade() -> None:
    """Drop it."""
    op.execute("DROP INDEX ix_risk_verdict_rule")
