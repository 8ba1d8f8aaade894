"""Alembic's entry: one transaction a migration run, behind an advisory lock, on the engine handed in by code."""

from __future__ import annotations

from alembic import context
from sqlalchemy import text

from coupon_workers.schema import Base
from coupon_workers.schema.migration import MIGRATION_LOCK

engine = context.config.attributes["engine"]

with engine.connect() as connection:
    # A long migration is not a runaway statement.
    connection.execute(text("SET statement_timeout = 0"))
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
    connection.commit()
    try:
        context.configure(connection=connection, target_metadata=Base.metadata, transactional_ddl=True)
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    finally:
        connection.rollback()
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
        connection.execute(text("RESET statement_timeout"))
        connection.commit()
