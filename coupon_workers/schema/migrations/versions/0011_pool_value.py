"""The pools of random-amount templates."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# Room in each page for the newer version of a row: its count moves with every coupon.
CREATE = """
CREATE TABLE pool_value (
    template_id BIGINT NOT NULL,
    amount_minor BIGINT NOT NULL,
    quantity BIGINT NOT NULL,
    issued_quantity BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT pk_pool_value PRIMARY KEY (template_id, amount_minor),
    CONSTRAINT ck_pool_value_amount CHECK (amount_minor > 0),
    CONSTRAINT ck_pool_value_quantity CHECK (quantity >= 1),
    CONSTRAINT ck_pool_value_issued CHECK (issued_quantity BETWEEN 0 AND quantity)
) WITH (fillfactor = 70);
"""


def upgrade() -> None:
    """Create the table."""
    op.execute(CREATE)


def downgrade() -> None:
    """Drop it."""
    op.execute("DROP TABLE pool_value")
