"""Lotteries: their prizes, and who has drawn what."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

CREATE = """
CREATE TABLE lottery (
    lottery_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    status TEXT DEFAULT 'open' NOT NULL,
    start_at TIMESTAMP WITH TIME ZONE NOT NULL,
    end_at TIMESTAMP WITH TIME ZONE NOT NULL,
    timezone TEXT NOT NULL,
    per_user_limit INTEGER,
    per_user_daily_limit INTEGER,
    version BIGINT DEFAULT 1 NOT NULL,
    draw_count BIGINT DEFAULT 0 NOT NULL,
    none_count BIGINT DEFAULT 0 NOT NULL,
    rejected_count BIGINT DEFAULT 0 NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    approved_by TEXT,
    ended_by TEXT,
    ended_at TIMESTAMP WITH TIME ZONE,
    gate_forgotten_at TIMESTAMP WITH TIME ZONE,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_lottery PRIMARY KEY (lottery_id),
    CONSTRAINT ck_lottery_status CHECK (status IN ('pending_approval', 'open', 'paused', 'ending', 'ended')),
    CONSTRAINT ck_lottery_window CHECK (start_at < end_at),
    CONSTRAINT ck_lottery_limits CHECK (least(per_user_limit, per_user_daily_limit) >= 1),
    CONSTRAINT ck_lottery_counts CHECK (none_count BETWEEN 0 AND draw_count AND rejected_count >= 0),
    CONSTRAINT ck_lottery_ended CHECK ((status = 'ended') = (ended_at IS NOT NULL)),
    CONSTRAINT ck_lottery_forgotten CHECK (gate_forgotten_at IS NULL OR status = 'ended')
);
CREATE INDEX ix_lottery_swept ON lottery (lottery_id) WHERE gate_forgotten_at IS NULL;

CREATE TABLE prize (
    lottery_id BIGINT NOT NULL,
    prize_no SMALLINT NOT NULL,
    name TEXT NOT NULL,
    weight INTEGER NOT NULL,
    template_id BIGINT,
    stock BIGINT NOT NULL,
    drawn_count BIGINT DEFAULT 0 NOT NULL,
    left_quantity BIGINT NOT NULL,
    CONSTRAINT pk_prize PRIMARY KEY (lottery_id, prize_no),
    CONSTRAINT ck_prize_prize_no CHECK (prize_no >= 1),
    CONSTRAINT ck_prize_weight CHECK (weight BETWEEN 0 AND 1000000),
    CONSTRAINT ck_prize_drawn CHECK (drawn_count BETWEEN 0 AND stock),
    CONSTRAINT ck_prize_left CHECK (left_quantity IN (0, stock - drawn_count))
);
CREATE INDEX ix_prize_template ON prize (template_id) WHERE template_id IS NOT NULL;

CREATE TABLE draw (
    lottery_id BIGINT NOT NULL,
    draw_id BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    prize_no SMALLINT NOT NULL,
    reason TEXT,
    coupon_id BIGINT,
    drawn_at TIMESTAMP WITH TIME ZONE NOT NULL,
    settled_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_draw PRIMARY KEY (lottery_id, draw_id),
    CONSTRAINT ck_draw_prize_no CHECK (prize_no >= 0),
    CONSTRAINT ck_draw_coupon CHECK (coupon_id IS NULL OR (coupon_id = draw_id AND prize_no > 0 AND reason IS NULL))
);
CREATE UNIQUE INDEX uq_draw_request ON draw (lottery_id, user_id, request_id)
    WHERE reason IS DISTINCT FROM 'DUPLICATE';
CREATE INDEX ix_draw_user ON draw (user_id, draw_id);
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(CREATE)


def downgrade() -> None:
    """Drop them."""
    for table in ("draw", "prize", "lottery"):
        op.execute(f"DROP TABLE {table}")
