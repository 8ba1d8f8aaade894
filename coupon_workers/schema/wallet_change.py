"""``wallet_change``: whose wallets changed, written in the transaction of the change (decision 0026)."""

from __future__ import annotations

from sqlalchemy import ARRAY, BigInteger, Column, Index, Table, Text, text

from coupon_workers.schema.base import Base

wallet_change = Table(
    "wallet_change",
    Base.metadata,
    # The transaction's own number: whoever reads the rows of all that was not finished at his last look misses none.
    Column(
        "txid",
        BigInteger,
        server_default=text("CAST(CAST(pg_current_xact_id() AS text) AS bigint)"),
        nullable=False,
    ),
    # NULL: everybody's.
    Column("user_ids", ARRAY(Text)),
    Index("ix_wallet_change_txid", "txid"),
    # After a crash of the server nothing is vouched for that was read before it: the rows need not survive it.
    prefixes=["UNLOGGED"],
)
