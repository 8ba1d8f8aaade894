"""Noting, in the transaction of a change, whose wallets it changes.

A kept page of a wallet may be old as long as nobody is noted whose page it is (``wallet/wallet_watch.py``): whatever
changes what a wallet shows must note it here.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

_EVERYBODY = text("INSERT INTO wallet_change (user_ids) VALUES (NULL)")


def noted(source: str, name: str = "noted") -> str:
    """The CTE ``name``: one row for all the users of ``source``, and none when there are none."""
    return f"""
    {name} AS (
        INSERT INTO wallet_change (user_ids) SELECT array_agg(user_id) FROM {source} HAVING count(*) > 0
    )"""


def note_everybody(connection: Connection) -> None:
    """Every wallet may show it."""
    connection.execute(_EVERYBODY)
