"""Statements that the server plans once a connection, for calls whose planning would cost more than their work.

A change of an order touches half a dozen partitioned tables in one statement: planned anew each time it takes the
server five times as long as it takes to run. A prepared statement is planned when a connection first uses it, and
again when tables or their statistics change.

A pooler between us and the server must give a connection to one client at a time (session pooling).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import psycopg2
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")
_PREPARED = "coupon_workers.prepared"


class PreparedStatement:
    """``name`` is the statement's on each connection; ``types`` gives the PostgreSQL type of each ``:parameter``.

    Select columns by name, never ``*``: a table that gains a column must not change what the statement answers.
    Raises ``ValueError`` when parameters and types do not match.
    """

    def __init__(self, name: str, sql: str, /, **types: str) -> None:
        order = list(types)
        odd = set(_PARAMETER.findall(sql)) ^ set(types)
        if odd:
            raise ValueError(f"{name}: {', '.join(sorted(odd))} in the statement or in the types only")
        numbered = _PARAMETER.sub(lambda match: f"${order.index(match[1]) + 1}", sql)
        self.name = name
        self.prepare = f"PREPARE {name} ({', '.join(types.values())}) AS {numbered}"
        self.call = f"EXECUTE {name} ({', '.join(f'%({parameter})s' for parameter in order)})"
        self._columns: tuple[str, ...] = ()
        self._binaries: tuple[str, ...] = ()

    def rows(self, connection: Connection, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run it in the connection's transaction: what it answers, by its columns.

        ``arguments`` has a value for each parameter, and may have more. Raises the ``DBAPIError``s that SQLAlchemy
        raises. Its own way to a result costs as much as the round trip.
        """
        driver = connection.connection
        cursor = driver.cursor()
        try:
            prepared: set[str] = connection.info.setdefault(_PREPARED, set())
            if self.name not in prepared:
                # Not undone by a rollback; a new connection of the pool has a new ``info``.
                cursor.execute(self.prepare)
                prepared.add(self.name)
            cursor.execute(self.call, arguments)
            rows = cursor.fetchall()
            if not self._columns:
                self._binaries = tuple(name for name, kind, *_ in cursor.description if kind == psycopg2.BINARY)
                self._columns = tuple(name for name, *_ in cursor.description)
        except psycopg2.Error as error:
            lost = connection.dialect.is_disconnect(error, driver, cursor)
            if lost:
                connection.invalidate(error)
            raise DBAPIError.instance(
                self.name, None, error, psycopg2.Error, hide_parameters=True, connection_invalidated=lost
            ) from error
        finally:
            cursor.close()
        return [self._row(row) for row in rows]

    def _row(self, values: tuple[Any, ...]) -> dict[str, Any]:
        row = dict(zip(self._columns, values, strict=True))
        for name in self._binaries:
            # The driver's memoryview is unequal to bytes of the same content.
            if row[name] is not None:
                row[name] = bytes(row[name])
        return row
