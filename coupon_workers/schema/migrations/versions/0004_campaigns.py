"""Campaigns: batches, their shards and audiences, the rows that failed, tags of users."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

CREATE = """
CREATE TABLE issue_batch (
    batch_id BIGINT NOT NULL,
    template_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    policy TEXT NOT NULL,
    status TEXT DEFAULT 'staging' NOT NULL,
    reason TEXT,
    tags TEXT,
    file_name TEXT,
    start_at TIMESTAMP WITH TIME ZONE,
    needs_approval BOOLEAN DEFAULT false NOT NULL,
    approved_by TEXT,
    row_count BIGINT DEFAULT 0 NOT NULL,
    invalid_count BIGINT DEFAULT 0 NOT NULL,
    blank_count BIGINT DEFAULT 0 NOT NULL,
    duplicate_count BIGINT DEFAULT 0 NOT NULL,
    audience_count BIGINT DEFAULT 0 NOT NULL,
    issued_count BIGINT DEFAULT 0 NOT NULL,
    refused_count BIGINT DEFAULT 0 NOT NULL,
    reserved_quantity BIGINT DEFAULT 0 NOT NULL,
    left_quantity BIGINT DEFAULT 0 NOT NULL,
    shard_count SMALLINT DEFAULT 0 NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    finished_at TIMESTAMP WITH TIME ZONE,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_issue_batch PRIMARY KEY (batch_id),
    CONSTRAINT ck_issue_batch_status CHECK (
        status IN ('staging', 'ready', 'running', 'paused', 'done', 'cancelled', 'failed')
    ),
    CONSTRAINT ck_issue_batch_policy CHECK (policy IN ('all_or_nothing', 'best_effort')),
    CONSTRAINT ck_issue_batch_rows_add_up CHECK (row_count = invalid_count + duplicate_count + audience_count),
    CONSTRAINT ck_issue_batch_never_over_issued CHECK (issued_count + refused_count <= audience_count),
    CONSTRAINT ck_issue_batch_left CHECK (left_quantity BETWEEN 0 AND reserved_quantity),
    CONSTRAINT ck_issue_batch_within_reservation CHECK (issued_count + left_quantity <= reserved_quantity),
    CONSTRAINT ck_issue_batch_done CHECK (
        (status = 'done') <= (issued_count + refused_count = audience_count AND left_quantity = 0)
    ),
    CONSTRAINT ck_issue_batch_nothing_kept CHECK ((status IN ('cancelled', 'failed')) <= (left_quantity = 0))
);
CREATE INDEX ix_issue_batch_open ON issue_batch (status, batch_id);
CREATE INDEX ix_issue_batch_template ON issue_batch (template_id, batch_id);

CREATE TABLE issue_shard (
    batch_id BIGINT NOT NULL,
    shard SMALLINT NOT NULL,
    member_count INTEGER NOT NULL,
    cursor INTEGER DEFAULT 0 NOT NULL,
    gate_cursor INTEGER DEFAULT 0 NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_issue_shard PRIMARY KEY (batch_id, shard),
    CONSTRAINT ck_issue_shard_cursor CHECK (cursor BETWEEN 0 AND member_count),
    CONSTRAINT ck_issue_shard_gate_cursor CHECK (gate_cursor BETWEEN 0 AND cursor)
);

CREATE TABLE audience_file (
    batch_id BIGINT NOT NULL,
    part_no INTEGER NOT NULL,
    content BYTEA NOT NULL,
    CONSTRAINT pk_audience_file PRIMARY KEY (batch_id, part_no)
);

CREATE TABLE audience_member (
    batch_id BIGINT NOT NULL,
    shard SMALLINT NOT NULL,
    member_no INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    row_no BIGINT NOT NULL,
    CONSTRAINT pk_audience_member PRIMARY KEY (batch_id, shard, member_no)
);

CREATE TABLE batch_failure (
    failure_id BIGSERIAL NOT NULL,
    batch_id BIGINT NOT NULL,
    row_no BIGINT NOT NULL,
    value TEXT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT,
    CONSTRAINT pk_batch_failure PRIMARY KEY (failure_id)
);
CREATE INDEX ix_batch_failure_row ON batch_failure (batch_id, row_no, failure_id);

CREATE TABLE user_tag (
    user_id TEXT NOT NULL,
    tag TEXT NOT NULL,
    CONSTRAINT pk_user_tag PRIMARY KEY (user_id, tag)
);
CREATE INDEX ix_user_tag_tag ON user_tag (tag, user_id);
"""

ALTER = """
ALTER TABLE coupon_template ADD COLUMN granted_quantity BIGINT DEFAULT 0 NOT NULL;
ALTER TABLE coupon_template
    ADD CONSTRAINT ck_coupon_template_granted CHECK (granted_quantity BETWEEN 0 AND issued_quantity);
ALTER TABLE outbox DROP CONSTRAINT ck_outbox_event;
ALTER TABLE outbox ADD CONSTRAINT ck_outbox_event CHECK (
    event IN ('coupon.issued', 'claim.rejected', 'coupon.locked', 'coupon.redeemed',
              'coupon.released', 'coupon.returned', 'coupon.expired', 'coupon.expiring',
              'coupon.transferred', 'coupon.revoked', 'batch.finished')
);
"""

REVERT = """
ALTER TABLE outbox DROP CONSTRAINT ck_outbox_event;
DELETE FROM outbox WHERE event = 'batch.finished';
ALTER TABLE outbox ADD CONSTRAINT ck_outbox_event CHECK (
    event IN ('coupon.issued', 'claim.rejected', 'coupon.locked', 'coupon.redeemed',
              'coupon.released', 'coupon.returned', 'coupon.expired', 'coupon.expiring',
              'coupon.transferred', 'coupon.revoked')
);
ALTER TABLE coupon_template DROP COLUMN granted_quantity;
"""

TABLES = ("user_tag", "batch_failure", "audience_member", "audience_file", "issue_shard", "issue_batch")


def upgrade() -> None:
    """Create the tables, and change those there are."""
    op.execute(CREATE)
    op.execute(ALTER)


def downgrade() -> None:
    """Drop them."""
    op.execute(REVERT)
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
