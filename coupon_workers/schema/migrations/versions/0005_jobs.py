"""Extra runs of jobs, and what the forgetting of events and of batches goes by."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

CREATE = """
CREATE TABLE job_extra_run (
    job TEXT NOT NULL,
    run_id BIGINT NOT NULL,
    logical_at TIMESTAMP WITH TIME ZONE NOT NULL,
    asked_by TEXT NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE NOT NULL,
    enqueued_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_job_extra_run PRIMARY KEY (job, run_id)
);
CREATE INDEX ix_job_extra_run_recorded_at ON job_extra_run (recorded_at);

CREATE INDEX ix_order_event_unknown ON order_event (tried_at) WHERE state = 'refused' AND code = 'ORDER_NOT_FOUND';

ALTER TABLE issue_batch ADD COLUMN records TEXT DEFAULT 'kept' NOT NULL;
ALTER TABLE issue_batch ADD CONSTRAINT ck_issue_batch_records CHECK (records IN ('kept', 'going', 'gone'));
CREATE INDEX ix_issue_batch_records ON issue_batch (finished_at) WHERE records <> 'gone';
"""

REVERT = """
ALTER TABLE issue_batch DROP COLUMN records;
DROP INDEX ix_order_event_unknown;
DROP TABLE job_extra_run;
"""


def upgrade() -> None:
    """Create the table, the column and the indexes."""
    op.execute(CREATE)


def downgrade() -> None:
    """Drop them."""
    op.execute(REVERT)
