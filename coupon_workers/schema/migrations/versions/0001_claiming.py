"""Everything a claim needs: templates, coupons and their flow, rejections, keys, outbox, the scheduler's books."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

PARTITIONS = 8

CREATE = """
CREATE TABLE api_key (
    key_id TEXT NOT NULL,
    name TEXT NOT NULL,
    key_hash BYTEA NOT NULL,
    scopes TEXT[] NOT NULL,
    signed BOOLEAN DEFAULT false NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    revoked_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_api_key PRIMARY KEY (key_id),
    CONSTRAINT uq_api_key_key_hash UNIQUE (key_hash)
);

CREATE TABLE idempotency (
    key_id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    state TEXT NOT NULL,
    deadline TIMESTAMP WITH TIME ZONE NOT NULL,
    subject_id BIGINT NOT NULL,
    response_status BIGINT,
    response_body TEXT,
    response_type TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_idempotency PRIMARY KEY (key_id, idempotency_key),
    CONSTRAINT ck_idempotency_state CHECK (state IN ('running', 'done'))
);
CREATE INDEX ix_idempotency_created_at ON idempotency (created_at);

CREATE TABLE coupon_template (
    template_id BIGINT NOT NULL,
    template_no TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount_minor BIGINT,
    percent_off_bp BIGINT,
    max_discount_minor BIGINT,
    pool JSONB,
    threshold_minor BIGINT NOT NULL,
    total_quantity BIGINT NOT NULL,
    issued_quantity BIGINT DEFAULT 0 NOT NULL,
    reserved_quantity BIGINT DEFAULT 0 NOT NULL,
    rejected_quantity BIGINT DEFAULT 0 NOT NULL,
    per_user_limit BIGINT,
    per_user_daily_limit BIGINT,
    claim_start TIMESTAMP WITH TIME ZONE NOT NULL,
    claim_end TIMESTAMP WITH TIME ZONE NOT NULL,
    validity JSONB NOT NULL,
    timezone TEXT NOT NULL,
    scope JSONB NOT NULL,
    stacking JSONB NOT NULL,
    refund JSONB NOT NULL,
    transferable BOOLEAN NOT NULL,
    restock_on_revoke BOOLEAN NOT NULL,
    notify BOOLEAN NOT NULL,
    channels_claim JSONB NOT NULL,
    risk_policy TEXT,
    approval_required BOOLEAN,
    status TEXT DEFAULT 'draft' NOT NULL,
    version BIGINT DEFAULT 1 NOT NULL,
    pause_epoch BIGINT DEFAULT 0 NOT NULL,
    bucket_count SMALLINT DEFAULT 1 NOT NULL,
    created_by TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_coupon_template PRIMARY KEY (template_id),
    CONSTRAINT ck_coupon_template_status CHECK (
        status IN ('draft', 'pending_approval', 'scheduled', 'active', 'paused', 'ended', 'offline', 'archived')
    ),
    CONSTRAINT ck_coupon_template_type CHECK (type IN ('amount_off', 'percent_off', 'cash', 'random_amount')),
    CONSTRAINT ck_coupon_template_total_positive CHECK (total_quantity >= 1),
    CONSTRAINT ck_coupon_template_books_not_negative CHECK (issued_quantity >= 0 AND reserved_quantity >= 0),
    CONSTRAINT ck_coupon_template_never_over_issued CHECK (issued_quantity + reserved_quantity <= total_quantity),
    CONSTRAINT ck_coupon_template_claim_window CHECK (claim_start < claim_end),
    CONSTRAINT ck_coupon_template_per_user_limit CHECK (per_user_limit >= 1),
    CONSTRAINT ck_coupon_template_per_user_daily_limit CHECK (per_user_daily_limit >= 1),
    CONSTRAINT ck_coupon_template_threshold CHECK (threshold_minor >= 0),
    CONSTRAINT ck_coupon_template_amount CHECK (amount_minor > 0),
    CONSTRAINT ck_coupon_template_percent_off CHECK (percent_off_bp BETWEEN 1 AND 10000),
    CONSTRAINT ck_coupon_template_max_discount CHECK (max_discount_minor > 0),
    CONSTRAINT ck_coupon_template_bucket_count CHECK (bucket_count = 1),
    CONSTRAINT ck_coupon_template_value_of_type CHECK (
        CASE type WHEN 'percent_off' THEN percent_off_bp IS NOT NULL AND amount_minor IS NULL
        WHEN 'random_amount' THEN pool IS NOT NULL AND amount_minor IS NULL
        ELSE amount_minor IS NOT NULL AND percent_off_bp IS NULL END
    ),
    CONSTRAINT uq_coupon_template_template_no UNIQUE (template_no)
);
CREATE INDEX ix_coupon_template_status ON coupon_template (status, template_id);

CREATE TABLE coupon (
    user_id TEXT NOT NULL,
    coupon_id BIGINT NOT NULL,
    template_id BIGINT NOT NULL,
    batch_no TEXT DEFAULT '' NOT NULL,
    claim_seq BIGINT NOT NULL,
    request_id TEXT NOT NULL,
    status TEXT DEFAULT 'unused' NOT NULL,
    version SMALLINT DEFAULT 1 NOT NULL,
    face_value_minor BIGINT,
    template_version BIGINT NOT NULL,
    valid_from TIMESTAMP WITH TIME ZONE NOT NULL,
    valid_to TIMESTAMP WITH TIME ZONE NOT NULL,
    order_no TEXT,
    source TEXT NOT NULL,
    channel TEXT,
    claimed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    issued_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_coupon PRIMARY KEY (user_id, coupon_id),
    CONSTRAINT uq_coupon_claim_seq UNIQUE (user_id, template_id, batch_no, claim_seq),
    CONSTRAINT uq_coupon_request UNIQUE (user_id, template_id, request_id),
    CONSTRAINT ck_coupon_status CHECK (status IN ('unused', 'locked', 'redeemed', 'expired', 'revoked', 'transferred')),
    CONSTRAINT ck_coupon_source CHECK (source IN ('claim', 'batch', 'code', 'lottery', 'transfer', 'manual')),
    CONSTRAINT ck_coupon_validity CHECK (valid_from < valid_to),
    CONSTRAINT ck_coupon_order_no CHECK ((status IN ('locked', 'redeemed')) <= (order_no IS NOT NULL))
) PARTITION BY HASH (user_id);
CREATE INDEX ix_coupon_coupon_id ON coupon (coupon_id);
CREATE INDEX ix_coupon_template ON coupon (template_id, coupon_id);

CREATE TABLE coupon_flow (
    user_id TEXT NOT NULL,
    coupon_id BIGINT NOT NULL,
    flow_no SMALLINT NOT NULL,
    action TEXT NOT NULL,
    from_status TEXT,
    to_status TEXT NOT NULL,
    order_no TEXT,
    operator TEXT NOT NULL,
    request_id TEXT,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_coupon_flow PRIMARY KEY (user_id, coupon_id, flow_no),
    CONSTRAINT ck_coupon_flow_action CHECK (
        action IN ('issue', 'lock', 'redeem', 'release', 'refund', 'expire', 'revoke', 'transfer')
    ),
    CONSTRAINT ck_coupon_flow_from_status CHECK (
        from_status IN ('unused', 'locked', 'redeemed', 'expired', 'revoked', 'transferred')
    ),
    CONSTRAINT ck_coupon_flow_to_status CHECK (
        to_status IN ('unused', 'locked', 'redeemed', 'expired', 'revoked', 'transferred')
    ),
    CONSTRAINT ck_coupon_flow_first_has_no_from CHECK ((flow_no = 1) = (from_status IS NULL))
) PARTITION BY HASH (user_id);

CREATE TABLE claim_rejection (
    claim_id BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    template_id BIGINT NOT NULL,
    request_id TEXT NOT NULL,
    claim_seq BIGINT NOT NULL,
    reason TEXT NOT NULL,
    claimed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    rejected_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_claim_rejection PRIMARY KEY (claim_id)
);
CREATE INDEX ix_claim_rejection_request ON claim_rejection (template_id, user_id, request_id);

CREATE TABLE claim_set_aside (
    template_id BIGINT NOT NULL,
    bucket BIGINT NOT NULL,
    entry_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_claim_set_aside PRIMARY KEY (template_id, bucket, entry_id)
);

CREATE TABLE outbox (
    outbox_id BIGSERIAL NOT NULL,
    event TEXT NOT NULL,
    user_id TEXT NOT NULL,
    template_id BIGINT NOT NULL,
    coupon_id BIGINT NOT NULL,
    detail JSONB,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    delivered_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_outbox PRIMARY KEY (outbox_id),
    CONSTRAINT ck_outbox_event CHECK (event IN ('coupon.issued', 'claim.rejected'))
);
CREATE INDEX ix_outbox_undelivered ON outbox (outbox_id) WHERE delivered_at IS NULL;

CREATE TABLE scheduler_lease (
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_scheduler_lease PRIMARY KEY (name)
);

CREATE TABLE job_run (
    job TEXT NOT NULL,
    logical_at TIMESTAMP WITH TIME ZONE NOT NULL,
    epoch BIGINT NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    enqueued_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_job_run PRIMARY KEY (job, logical_at)
);
CREATE INDEX ix_job_run_recorded_at ON job_run (recorded_at);

"""

TABLES = (
    "job_run",
    "scheduler_lease",
    "outbox",
    "claim_set_aside",
    "claim_rejection",
    "coupon_flow",
    "coupon",
    "coupon_template",
    "idempotency",
    "api_key",
)


def upgrade() -> None:
    """Create the tables, ``coupon`` and ``coupon_flow`` with their partitions."""
    op.execute(CREATE)
    for table in ("coupon", "coupon_flow"):
        for remainder in range(PARTITIONS):
            op.execute(
                f"CREATE TABLE {table}_p{remainder} PARTITION OF {table} "
                f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {remainder})"
            )


def downgrade() -> None:
    """Drop everything; the partitions go with their tables."""
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
