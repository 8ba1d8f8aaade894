"""One look at the database: a snapshot that changes nothing and may take its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.checking.breach import BREACH_LIMIT
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.services import Services

STATEMENT_TIMEOUT_MS = 600_000
"""A check may read every coupon there is; a request may not."""

# Partition by partition, so that a sort or a hash holds an eighth of the coupons at a time.
_SNAPSHOT = f"""
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS};
    SET LOCAL enable_partitionwise_join = on;
    SET LOCAL enable_partitionwise_aggregate = on;
    SET LOCAL work_mem = '64MB';
    SET LOCAL jit = off;
    SET LOCAL enable_seqscan = on;
"""


@contextmanager
def snapshot(services: Services) -> Iterator[Connection]:
    """A read-only transaction in which every statement sees the same instant. Raises ``StoreUnavailable``."""
    with database_errors(), services.engine.connect() as connection, connection.begin():
        connection.exec_driver_sql(_SNAPSHOT)
        yield connection


def rows(services: Services, sql: str, arguments: Mapping[str, Any] | None = None) -> list[Any]:
    """The rows of one statement, which may say ``LIMIT :breach_limit``. Raises ``StoreUnavailable``."""
    with snapshot(services) as connection:
        return list(connection.execute(text(sql), {"breach_limit": BREACH_LIMIT, **(arguments or {})}))
