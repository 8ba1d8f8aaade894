"""COPY: many rows into a table at the cost of reading them, in the transaction that is open."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

import psycopg2
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


def copy_in(connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[str | int]]) -> None:
    """Write rows of values, in the order of the columns, all of them in memory at once.

    Texts must be printable, as ids, tags and shown values are: neither tab nor newline needs an escape then. Raises
    the ``DBAPIError``s that SQLAlchemy raises.
    """
    content = "".join(["\t".join(map(str, row)) + "\n" for row in rows])
    if not content:
        return
    if "\\" in content:
        content = content.replace("\\", "\\\\")
    copy = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    driver = connection.connection
    cursor = driver.cursor()
    try:
        cursor.copy_expert(copy, io.StringIO(content))
    except psycopg2.Error as error:
        lost = connection.dialect.is_disconnect(error, driver, cursor)
        if lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            copy, None, error, psycopg2.Error, hide_parameters=True, connection_invalidated=lost
        ) from error
    finally:
        cursor.close()
