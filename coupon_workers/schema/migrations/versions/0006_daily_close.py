"""The daily close, and indexes by which a day is read: of the ledger in order, of the flow in blocks."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

CREATE = """
CREATE TABLE daily_close (
    business_date DATE NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT DEFAULT 'closed' NOT NULL,
    closed_by TEXT NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    reopened_by TEXT,
    reopened_at TIMESTAMP WITH TIME ZONE,
    reopen_reason TEXT,
    CONSTRAINT pk_daily_close PRIMARY KEY (business_date, revision),
    CONSTRAINT ck_daily_close_status CHECK (status IN ('closed', 'reopened')),
    CONSTRAINT ck_daily_close_revision CHECK (revision >= 1),
    CONSTRAINT ck_daily_close_trace CHECK (
        (status = 'reopened') = (num_nonnulls(reopened_by, reopened_at, reopen_reason) = 3)
        AND (status = 'closed') = (num_nonnulls(reopened_by, reopened_at, reopen_reason) = 0)
    )
);
CREATE UNIQUE INDEX uq_daily_close_in_force ON daily_close (business_date) WHERE status = 'closed';

CREATE TABLE daily_close_row (
    business_date DATE NOT NULL,
    revision INTEGER NOT NULL,
    template_id BIGINT NOT NULL,
    currency TEXT NOT NULL,
    template_name TEXT NOT NULL,
    issued_count BIGINT NOT NULL,
    issued_minor BIGINT,
    redeemed_count BIGINT NOT NULL,
    redeemed_minor BIGINT NOT NULL,
    returned_count BIGINT NOT NULL,
    returned_minor BIGINT NOT NULL,
    expired_count BIGINT NOT NULL,
    expired_minor BIGINT,
    adjusted_minor BIGINT NOT NULL,
    expense_minor BIGINT NOT NULL,
    CONSTRAINT pk_daily_close_row PRIMARY KEY (business_date, revision, template_id, currency),
    CONSTRAINT ck_daily_close_row_counts CHECK (
        issued_count >= 0 AND redeemed_count >= 0 AND returned_count >= 0 AND expired_count >= 0
    ),
    CONSTRAINT ck_daily_close_row_amounts CHECK (
        issued_minor >= 0 AND redeemed_minor >= 0 AND returned_minor >= 0 AND expired_minor >= 0
    ),
    CONSTRAINT ck_daily_close_row_expense CHECK (expense_minor = redeemed_minor - returned_minor + adjusted_minor)
);
"""

# A block index: the flow is written in the order of its instants, and claims pay next to nothing for it.
INDEXES = """
CREATE INDEX ix_coupon_flow_at ON coupon_flow USING brin (at) WITH (pages_per_range = 32, autosummarize = on);
DROP INDEX ix_ledger_entry_day;
CREATE INDEX ix_ledger_entry_day ON ledger_entry (business_date, template_id, entry_id);
DROP INDEX ix_ledger_entry_template;
CREATE INDEX ix_ledger_entry_template ON ledger_entry (template_id, business_date, entry_id);
"""

REVERT = """
DROP INDEX ix_ledger_entry_template;
CREATE INDEX ix_ledger_entry_template ON ledger_entry (template_id, business_date);
DROP INDEX ix_ledger_entry_day;
CREATE INDEX ix_ledger_entry_day ON ledger_entry (business_date, template_id);
DROP INDEX ix_coupon_flow_at;
DROP TABLE daily_close_row;
DROP TABLE daily_close;
"""


def upgrade() -> None:
    """Create the tables and the indexes."""
    op.execute(CREATE)
    op.execute(INDEXES)


def downgrade() -> None:
    """Drop them."""
    op.execute(REVERT)
