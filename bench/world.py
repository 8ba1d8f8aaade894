"""A database with its Redis: where sales are held. The main one is shared with the programs a row starts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import psycopg2
from psycopg2.extensions import connection as PgConnection  # noqa: N812 - a class, whatever the library calls it
from sqlalchemy import text
from sqlalchemy.engine import make_url

from bench.failure import BenchFailure
from coupon_workers.checking.gate_reading import known_buckets
from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.worker_number import LeasedIds
from coupon_workers.schema.migration import upgrade

_EMPTIED = (
    "coupon, coupon_flow, outbox, claim_rejection, claim_set_aside, coupon_template, coupon_order, coupon_use,"
    " coupon_refund, order_event, ledger_entry, coupon_transfer, issue_batch, issue_shard, audience_file,"
    " audience_member, batch_failure"
)
_QUIET_PATIENCE_S = 300.0


class World:
    """Our own services on a migrated database and a Redis database. Close it when done."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.services = make_services(settings)
        upgrade(self.services.engine)

    def clear(self) -> None:
        """Forget every sale: the tables of claiming and their keys. API keys and worker numbers stay."""
        self.execute(f"TRUNCATE {_EMPTIED}")
        redis = self.services.redis
        for keys in known_buckets(redis):
            redis.unlink(*_keys_of(keys))
            redis.srem(WARM_TEMPLATES, f"{keys.template_id}.{keys.bucket}")

    def quiet(self) -> None:
        """Give what was written before time to be written: nobody pays for the one before him.

        A checkpoint of PostgreSQL, and the end of a rewrite of Redis's append-only file. Raises ``BenchFailure``.
        """
        self.execute("CHECKPOINT")
        self.wait_for_rewrite()

    def wait_for_rewrite(self) -> None:
        """Wait until Redis rewrites no file. Raises ``BenchFailure`` when that takes minutes."""
        deadline = time.monotonic() + _QUIET_PATIENCE_S
        while self.services.redis.info("persistence")["aof_rewrite_in_progress"]:
            if time.monotonic() > deadline:
                raise BenchFailure(f"Redis has rewritten its file for {_QUIET_PATIENCE_S:g} s")
            time.sleep(0.05)

    def connect(self) -> PgConnection:
        """A bare connection, without the time-outs of our own: for filling, vacuuming, copying."""
        return psycopg2.connect(libpq_url(self.settings))

    def execute(self, statement: str, arguments: Mapping[str, Any] | None = None) -> None:
        """Run a statement in autocommit, for as long as it takes."""
        connection = self.connect()
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement, arguments)
        finally:
            connection.close()

    def number(self, statement: str, **arguments: Any) -> float:
        """The one number a query answers."""
        with self.services.engine.connect() as connection:
            return float(connection.scalar(text(statement), arguments) or 0)

    def close(self) -> None:
        """Give the worker number back and close the connections."""
        ids = getattr(self.services.next_id, "__self__", None)
        if isinstance(ids, LeasedIds):
            ids.close()
        self.services.engine.dispose()
        self.services.redis.close()


def libpq_url(settings: Settings) -> str:
    """The address of the database as libpq and psycopg2 spell it."""
    assert settings.database_url is not None
    url = make_url(settings.database_url.get_secret_value()).set(drivername="postgresql")
    return url.render_as_string(hide_password=False)


def _keys_of(keys: BucketKeys) -> tuple[str, ...]:
    return (
        keys.meta,
        keys.generation,
        keys.stock,
        keys.takers,
        keys.requests,
        keys.claims,
        keys.pending,
        keys.bell,
    )
