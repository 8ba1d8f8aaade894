"""Whose wallets changed."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

CREATE = """
CREATE UNLOGGED TABLE wallet_change (
    txid BIGINT DEFAULT CAST(CAST(pg_current_xact_id() AS text) AS bigint) NOT NULL,
    user_ids TEXT[]
);
CREATE INDEX ix_wallet_change_txid ON wallet_change (txid);
"""


def upgrade() -> None:
    """Create the table."""
    op.execute(CREATE)


def downgrade() -> None:
    """Drop it."""
    op.execute("DROP TABLE wallet_change")
