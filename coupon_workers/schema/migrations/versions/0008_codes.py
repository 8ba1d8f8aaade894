"""Redeem codes: their batches, the codes as keyed hashes, the sealed plain texts."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

CREATE = """
CREATE TABLE code_batch (
    code_batch_id BIGINT NOT NULL,
    template_id BIGINT NOT NULL,
    status TEXT DEFAULT 'generating' NOT NULL,
    quantity INTEGER NOT NULL,
    length SMALLINT NOT NULL,
    prefix TEXT NOT NULL,
    canonical_prefix TEXT NOT NULL,
    channel TEXT,
    check_digit BOOLEAN NOT NULL,
    pepper_id TEXT NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE,
    generated_count INTEGER DEFAULT 0 NOT NULL,
    used_count INTEGER DEFAULT 0 NOT NULL,
    left_quantity INTEGER NOT NULL,
    gate_cursor INTEGER DEFAULT 0 NOT NULL,
    export TEXT DEFAULT 'kept' NOT NULL,
    fetch_token TEXT,
    fetch_until TIMESTAMP WITH TIME ZONE,
    fetched_by TEXT,
    fetched_at TIMESTAMP WITH TIME ZONE,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE,
    ended_by TEXT,
    ended_at TIMESTAMP WITH TIME ZONE,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_code_batch PRIMARY KEY (code_batch_id),
    CONSTRAINT ck_code_batch_status CHECK (status IN ('generating', 'done', 'revoked', 'expired')),
    CONSTRAINT ck_code_batch_export CHECK (export IN ('kept', 'fetched', 'dropped')),
    CONSTRAINT ck_code_batch_generated CHECK (generated_count BETWEEN 0 AND quantity),
    CONSTRAINT ck_code_batch_used CHECK (used_count BETWEEN 0 AND generated_count),
    CONSTRAINT ck_code_batch_gate_cursor CHECK (gate_cursor BETWEEN 0 AND used_count),
    CONSTRAINT ck_code_batch_left CHECK (
        left_quantity = CASE WHEN status IN ('generating', 'done') THEN quantity - used_count ELSE 0 END
    ),
    CONSTRAINT ck_code_batch_done CHECK ((status = 'done') <= (generated_count = quantity)),
    CONSTRAINT ck_code_batch_fetched CHECK ((export = 'fetched') = (fetched_at IS NOT NULL))
);
CREATE INDEX ix_code_batch_status ON code_batch (status, code_batch_id);
CREATE INDEX ix_code_batch_template ON code_batch (template_id, code_batch_id);
CREATE INDEX ix_code_batch_form ON code_batch (canonical_prefix, length);
CREATE INDEX ix_code_batch_uncounted ON code_batch (code_batch_id) WHERE gate_cursor < used_count;

CREATE TABLE code_export_part (
    code_batch_id BIGINT NOT NULL,
    part_no INTEGER NOT NULL,
    content BYTEA NOT NULL,
    CONSTRAINT pk_code_export_part PRIMARY KEY (code_batch_id, part_no)
);
-- Sealed texts cannot be compressed.
ALTER TABLE code_export_part ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE code (
    code_batch_id BIGINT NOT NULL,
    used_at TIMESTAMP WITH TIME ZONE,
    coupon_id BIGINT,
    use_no INTEGER,
    code_hash BYTEA NOT NULL,
    user_id TEXT,
    request_id TEXT,
    CONSTRAINT pk_code PRIMARY KEY (code_hash),
    CONSTRAINT ck_code_hash CHECK (octet_length(code_hash) = 16),
    CONSTRAINT ck_code_used CHECK (num_nonnulls(use_no, user_id, request_id, coupon_id, used_at) IN (0, 5))
);
CREATE UNIQUE INDEX uq_code_use ON code (code_batch_id, use_no) WHERE use_no IS NOT NULL;
CREATE UNIQUE INDEX uq_code_coupon ON code (coupon_id) WHERE coupon_id IS NOT NULL;
CREATE UNIQUE INDEX uq_code_request ON code (user_id, request_id) WHERE user_id IS NOT NULL;
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(CREATE)


def downgrade() -> None:
    """Drop them."""
    for table in ("code", "code_export_part", "code_batch"):
        op.execute(f"DROP TABLE {table}")
