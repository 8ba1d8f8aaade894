"""The migrations and the models say the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from pydantic import SecretStr
from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url

from coupon_workers.errors import ServerTooOld
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.settings import Settings
from coupon_workers.schema import Base
from coupon_workers.schema.base import PARTITIONS
from coupon_workers.schema.migration import check_server, current_revision, downgrade, upgrade


@pytest.fixture
def empty_engine(settings: Settings, migrated_engine: Engine) -> Iterator[Engine]:
    """A database of its own with nothing in it."""
    assert settings.database_url is not None
    with migrated_engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE IF EXISTS schema_test"))
        connection.execute(text("CREATE DATABASE schema_test"))
    url = make_url(settings.database_url.get_secret_value()).set(database="schema_test")
    engine = make_engine(settings.model_copy(update={"database_url": SecretStr(url.render_as_string(False))}))
    yield engine
    engine.dispose()
    with migrated_engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE schema_test"))


def _differences(engine: Engine) -> list[object]:
    def ours(_object: object, name: str | None, kind: str, _reflected: bool, _compare_to: object) -> bool:
        return not (kind == "table" and name is not None and "_p" in name and name[-1].isdigit())

    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "include_object": ours}
        )
        return list(compare_metadata(context, Base.metadata))


def _constraints(engine: Engine) -> set[tuple[str, str, str]]:
    with engine.connect() as connection:
        rows = connection.execute(
            text(
                "SELECT c.relname, k.conname, pg_get_constraintdef(k.oid) FROM pg_constraint k"
                " JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE n.nspname = 'public' AND k.contype IN ('c', 'p', 'u', 'f') AND NOT c.relispartition"
            )
        )
        return {(row[0], row[1], row[2]) for row in rows}


def test_migrations_from_zero_give_the_tables_of_the_models(empty_engine: Engine) -> None:
    """Alembic finds nothing to change between the migrated database and the models."""
    upgrade(empty_engine)

    differences = _differences(empty_engine)

    assert [] == differences


def test_every_check_of_the_models_is_in_the_migrated_database(empty_engine: Engine) -> None:
    """Constraints are compared by name and by definition: Alembic does not look at checks."""
    upgrade(empty_engine)
    migrated = _constraints(empty_engine)
    downgrade(empty_engine)

    Base.metadata.create_all(empty_engine)

    assert migrated == _constraints(empty_engine)


def test_up_down_up_leaves_nothing_behind_and_works(empty_engine: Engine) -> None:
    """A downgrade takes every table away, and the next upgrade brings them back."""
    upgrade(empty_engine)
    assert current_revision(empty_engine) is not None

    downgrade(empty_engine)

    with empty_engine.connect() as connection:
        left = connection.scalars(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).all()
    assert ["alembic_version"] == list(left)
    upgrade(empty_engine)
    assert [] == _differences(empty_engine)


def test_a_downgrade_brings_archived_coupons_back(empty_engine: Engine) -> None:
    """The release before counts the rows of its own tables alone."""
    upgrade(empty_engine)
    with empty_engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO coupon_archive VALUES ('ann', 1, 7, '', 1, 'r1', 'expired', 2, NULL, 1, now(),"
                " now() + interval '1 day', NULL, 'claim', NULL, now(), now(), now(), now())"
            )
        )
        connection.execute(
            text(
                "INSERT INTO coupon_flow_archive VALUES ('ann', 1, 1, 'issue', NULL, 'unused', NULL, 'claim', 'r1',"
                " now(), now()), ('ann', 1, 2, 'expire', 'unused', 'expired', NULL, 'expiry', NULL, now(), now())"
            )
        )

    downgrade(empty_engine, "0007")

    with empty_engine.connect() as connection:
        coupons = connection.execute(text("SELECT user_id, coupon_id, status FROM coupon")).all()
        steps = connection.scalar(text("SELECT count(*) FROM coupon_flow"))
    assert ([("ann", 1, "expired")], 2) == ([tuple(row) for row in coupons], steps)


@pytest.mark.parametrize("table", ["coupon", "coupon_flow"])
def test_coupons_and_their_flow_are_partitioned_by_hash_of_the_user(engine: Engine, table: str) -> None:
    """DESIGN 5: from the first migration, and every unique key contains the user."""
    with engine.connect() as connection:
        key = connection.scalar(text("SELECT pg_get_partkeydef(to_regclass(:table))"), {"table": table})
        partitions = connection.scalar(
            text("SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(:table)"), {"table": table}
        )
        unique = connection.scalars(
            text(
                "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = to_regclass(:table) AND indisunique"
            ),
            {"table": table},
        ).all()

    assert "HASH (user_id)" == key
    assert PARTITIONS == partitions
    assert all("user_id" in definition for definition in unique)


def test_every_constraint_is_named_by_the_convention(engine: Engine) -> None:
    """A name a person can look up: pk_, uq_, ck_, fk_ or ix_ and the table."""
    names = {(table, name) for table, name, _ in _constraints(engine)}

    unnamed = [pair for pair in names if not pair[1].startswith(("pk_", "uq_", "ck_", "fk_", "alembic_version"))]

    assert [] == unnamed


def test_a_session_speaks_utc_and_has_time_outs(engine: Engine) -> None:
    """The server's own clock functions write the instants they mean, and no statement runs for ever."""
    with engine.connect() as connection:
        zone = connection.scalar(text("SHOW TimeZone"))
        timeout = connection.scalar(text("SHOW statement_timeout"))

    assert "UTC" == zone
    assert "15s" == timeout


@pytest.mark.parametrize("version", [90_624, 160_009, 170_005])
def test_a_server_that_does_not_know_our_statements_is_refused(version: int) -> None:
    """With a word, before anything is made; what would be made there looks well until the jobs run."""
    check_server(180_000)

    with pytest.raises(ServerTooOld, match=rf"PostgreSQL 18 or later .* version {version // 10_000}$"):
        check_server(version)
