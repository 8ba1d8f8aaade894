"""Coupons that ended long ago, moved out of the way with their history, and the counters that stand for them."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

CREATE = """
CREATE TABLE coupon_archive (
    user_id TEXT NOT NULL,
    coupon_id BIGINT NOT NULL,
    template_id BIGINT NOT NULL,
    batch_no TEXT NOT NULL,
    claim_seq BIGINT NOT NULL,
    request_id TEXT NOT NULL,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    face_value_minor BIGINT,
    template_version BIGINT NOT NULL,
    valid_from TIMESTAMP WITH TIME ZONE NOT NULL,
    valid_to TIMESTAMP WITH TIME ZONE NOT NULL,
    order_no TEXT,
    source TEXT NOT NULL,
    channel TEXT,
    claimed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    issued_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    archived_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_coupon_archive PRIMARY KEY (user_id, coupon_id),
    CONSTRAINT ck_coupon_archive_status CHECK (status IN ('expired', 'revoked', 'transferred')),
    CONSTRAINT ck_coupon_archive_source
        CHECK (source IN ('claim', 'batch', 'code', 'lottery', 'transfer', 'manual')),
    CONSTRAINT ck_coupon_archive_on_no_order CHECK (order_no IS NULL)
);
CREATE INDEX ix_coupon_archive_coupon_id ON coupon_archive (coupon_id);

CREATE TABLE coupon_flow_archive (
    user_id TEXT NOT NULL,
    coupon_id BIGINT NOT NULL,
    flow_no INTEGER NOT NULL,
    action TEXT NOT NULL,
    from_status TEXT,
    to_status TEXT NOT NULL,
    order_no TEXT,
    operator TEXT NOT NULL,
    request_id TEXT,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    archived_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_coupon_flow_archive PRIMARY KEY (user_id, coupon_id, flow_no)
);
CREATE INDEX ix_coupon_flow_archive_at ON coupon_flow_archive
    USING brin (at) WITH (pages_per_range = 32, autosummarize = on);

CREATE TABLE archive_pass (
    template_id BIGINT NOT NULL,
    cursor BIGINT NOT NULL,
    oldest_left TIMESTAMP WITH TIME ZONE,
    due_from TIMESTAMP WITH TIME ZONE,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_archive_pass PRIMARY KEY (template_id),
    CONSTRAINT ck_archive_pass_looked_at CHECK (cursor > 0 OR due_from IS NOT NULL)
);
"""

ALTER = """
ALTER TABLE coupon_template
    ADD COLUMN archived_quantity BIGINT DEFAULT 0 NOT NULL,
    ADD COLUMN archived_granted_quantity BIGINT DEFAULT 0 NOT NULL,
    ADD CONSTRAINT ck_coupon_template_archived CHECK (archived_quantity BETWEEN 0 AND issued_quantity),
    ADD CONSTRAINT ck_coupon_template_archived_granted
        CHECK (archived_granted_quantity BETWEEN 0 AND archived_quantity
               AND archived_granted_quantity <= granted_quantity);
ALTER TABLE issue_batch
    ADD COLUMN archived_count BIGINT DEFAULT 0 NOT NULL,
    ADD CONSTRAINT ck_issue_batch_archived CHECK (archived_count BETWEEN 0 AND issued_count);
"""

# What was moved goes back: an older release counts the rows of its own tables alone.
REVERT = """
INSERT INTO coupon
    (user_id, coupon_id, template_id, batch_no, claim_seq, request_id, status, version, face_value_minor,
     template_version, valid_from, valid_to, order_no, source, channel, claimed_at, issued_at, updated_at)
SELECT user_id, coupon_id, template_id, batch_no, claim_seq, request_id, status, version, face_value_minor,
       template_version, valid_from, valid_to, order_no, source, channel, claimed_at, issued_at, updated_at
  FROM coupon_archive;
INSERT INTO coupon_flow
    (user_id, coupon_id, flow_no, action, from_status, to_status, order_no, operator, request_id, at)
SELECT user_id, coupon_id, flow_no, action, from_status, to_status, order_no, operator, request_id, at
  FROM coupon_flow_archive;
ALTER TABLE issue_batch DROP CONSTRAINT ck_issue_batch_archived, DROP COLUMN archived_count;
ALTER TABLE coupon_template
    DROP CONSTRAINT ck_coupon_template_archived_granted, DROP CONSTRAINT ck_coupon_template_archived,
    DROP COLUMN archived_granted_quantity, DROP COLUMN archived_quantity;
"""

TABLES = ("archive_pass", "coupon_flow_archive", "coupon_archive")


def upgrade() -> None:
    """Create the tables, and change those there are."""
    op.execute(CREATE)
    op.execute(ALTER)


def downgrade() -> None:
    """Drop them, and bring the archived coupons back first."""
    op.execute(REVERT)
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
