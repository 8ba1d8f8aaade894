"""Of orders one finding is open for each business day: two statements may say of one order what differs."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

UPGRADE = """
DROP INDEX uq_recon_finding_open;
CREATE UNIQUE INDEX uq_recon_finding_open ON recon_finding (kind, finding_class, subject, business_date)
    NULLS NOT DISTINCT WHERE state = 'open';
"""

# Of several that are open the latest stays, as if there had been one.
DOWNGRADE = """
UPDATE recon_finding older SET state = 'resolved', closed_at = now()
 WHERE state = 'open' AND EXISTS (
    SELECT FROM recon_finding newer
     WHERE newer.state = 'open' AND newer.kind = older.kind AND newer.finding_class = older.finding_class
       AND newer.subject = older.subject AND newer.finding_id > older.finding_id);
DROP INDEX uq_recon_finding_open;
CREATE UNIQUE INDEX uq_recon_finding_open ON recon_finding (kind, finding_class, subject) WHERE state = 'open';
"""


def upgrade() -> None:
    """Let each day have its own."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """One for all days."""
    op.execute(DOWNGRADE)
