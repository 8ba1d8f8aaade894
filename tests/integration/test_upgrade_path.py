"""A database of an earlier release, with data, becomes one of this release (docs/operations.md, Upgrading)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from io import StringIO

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from pydantic import SecretStr
from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url

import coupon_workers.schema.migration as migration
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.cli.preheat import claimable_templates
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.services import Services
from coupon_workers.schema.migration import current_revision, upgrade
from tests.support.gift import give
from tests.support.order_shop import CART, OrderShop, ShopClock
from tests.support.sale import Sale, assert_sound, gate_of, open_sale

ORDERS_SINCE = "0002"
"""The release before knows no orders: of it there are claims alone."""

Rows = dict[str, int]


def published() -> list[str]:
    """Every revision that an installation may be at, but the newest."""
    config = Config()
    config.set_main_option("script_location", str(migration._SCRIPTS))
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    return sorted(revisions)[:-1]


@pytest.fixture
def earlier(services: Services) -> Iterator[Engine]:
    """A database of its own with nothing in it."""
    assert services.settings.database_url is not None
    with services.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE IF EXISTS earlier_release"))
        connection.execute(text("CREATE DATABASE earlier_release"))
    url = make_url(services.settings.database_url.get_secret_value()).set(database="earlier_release")
    engine = make_engine(
        services.settings.model_copy(update={"database_url": SecretStr(url.render_as_string(hide_password=False))})
    )
    yield engine
    engine.dispose()
    with services.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE earlier_release WITH (FORCE)"))


def do_business(services: Services, *, orders: bool) -> Sale:
    """Claims; where there are orders also those, paid, open, released and returned, and a gift."""
    sale = open_sale(services, total_quantity=20, per_user_limit=1)
    sale.claim_each(f"u{number}" for number in range(8))
    sale.drain()
    if orders:
        shop = OrderShop(services, ShopClock(utc_now()))
        template_id = shop.template(transferable=True)
        paid, returned, released, locked, given = (shop.issue(template_id) for _ in range(5))
        for order, coupon in (("paid", paid), ("returned", returned), ("released", released), ("locked", locked)):
            shop.lock(order, [coupon], list(CART))
        shop.pay("paid")
        shop.pay("returned")
        shop.refund("returned", "ref-1", [("1", 1), ("2", 1)])
        shop.release("released")
        give(shop.services, shop.user, given, "bob")
    return sale


def columns_of(engine: Engine) -> dict[str, set[str]]:
    """Table → columns of what holds rows: partitions are reached through their table."""
    with engine.connect() as connection:
        rows = connection.execute(
            text(
                "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
                " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p')"
                " AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'alembic_version'"
            )
        ).all()
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    return found


def hand_over(source: Engine, target: Engine) -> Rows:
    """Put into an earlier schema what it has room for; how many rows of each table."""
    ours, theirs = columns_of(source), columns_of(target)
    counts: Rows = {}
    with closing(source.raw_connection()) as read, closing(target.raw_connection()) as write:
        with read.cursor() as reading, write.cursor() as writing:
            writing.execute("SET session_replication_role = replica")  # parents may come after their children
            for table in sorted(ours.keys() & theirs.keys()):
                columns = ", ".join(f'"{name}"' for name in sorted(ours[table] & theirs[table]))
                rows = StringIO()
                reading.copy_expert(f"COPY (SELECT {columns} FROM {table}) TO STDOUT", rows)  # type: ignore[attr-defined]
                rows.seek(0)
                writing.copy_expert(f"COPY {table} ({columns}) FROM STDIN", rows)  # type: ignore[attr-defined]
                writing.execute(f"SELECT count(*) FROM {table}")
                counts[table] = writing.fetchone()[0]  # type: ignore[index]
            writing.execute("SET session_replication_role = origin")
            _advance_identities(writing)
        write.commit()
    return {table: count for table, count in counts.items() if count}


def _advance_identities(cursor: object) -> None:
    cursor.execute(  # type: ignore[attr-defined]
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND (is_identity = 'YES' OR column_default LIKE 'nextval%')"
    )
    for table, column in cursor.fetchall():  # type: ignore[attr-defined]
        cursor.execute(  # type: ignore[attr-defined]
            f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), coalesce(max({column}), 0) + 1, false)"
            f" FROM {table}"
        )


@pytest.mark.parametrize("revision", published())
def test_an_earlier_release_becomes_this_one_with_all_its_rows(
    services: Services, earlier: Engine, revision: str
) -> None:
    """Nothing is lost, every rule holds, old claims are known, limits hold, and the sale goes on."""
    sale = do_business(services, orders=revision >= ORDERS_SINCE)
    upgrade(earlier, revision)
    rows = hand_over(services.engine, earlier)

    upgrade(earlier)

    assert migration.current_revision(earlier) == current_revision(services.engine)
    with earlier.connect() as connection:
        after = {table: connection.scalar(text(f"SELECT count(*) FROM {table}")) for table in rows}
    assert rows == after
    assert {"coupon", "coupon_flow", "coupon_template"} <= rows.keys()
    services.redis.flushall()
    new = replace(services, engine=earlier)
    for template_id in claimable_templates(new):
        preheat_template(new, template_id)
    assert_sound(new)
    again = Sale(new, sale.template_id, gate_of(new))
    assert ClaimOutcome.REPLAYED == again.claim("u0").outcome
    assert ClaimOutcome.LIMIT_REACHED == again.claim("u0", "another").outcome
    again.claim_each(f"new{number}" for number in range(12))
    assert ClaimOutcome.SOLD_OUT == again.claim("too-late").outcome
    assert 12 == again.drain()
    assert_sound(new)
