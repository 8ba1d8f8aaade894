"""COPY: the fastest way into PostgreSQL, for the very rows that settling has written.

The rows are read back as COPY's own text before the clock starts, the tables are emptied, and the text is copied into
the same tables with their indexes, checks and partitions: one COPY a table, all in one transaction, its commit
included. So the peer reads no queue, computes nothing, sends no acknowledgement and commits once.
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass

from psycopg2.extensions import connection as PgConnection  # noqa: N812 - a class, whatever the library calls it

TABLES = ("coupon", "coupon_flow", "outbox")


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """The text of each table's rows."""

    texts: dict[str, bytes]


def read_rows(connection: PgConnection, tables: tuple[str, ...] = TABLES) -> CopiedRows:
    """Every row of the tables, in the order in which the coupons came."""
    texts = {}
    with connection, connection.cursor() as cursor:
        for table in tables:
            text = io.BytesIO()
            cursor.copy_expert(f"COPY (SELECT * FROM {table} ORDER BY coupon_id) TO STDOUT", text)
            texts[table] = text.getvalue()
    return CopiedRows(texts)


def copy_rows(connection: PgConnection, rows: CopiedRows) -> float:
    """Write them; the seconds it took, with the commit."""
    began_s = time.perf_counter()
    with connection, connection.cursor() as cursor:
        for table, text in rows.texts.items():
            cursor.copy_expert(f"COPY {table} FROM STDIN", io.BytesIO(text))
    return time.perf_counter() - began_s
