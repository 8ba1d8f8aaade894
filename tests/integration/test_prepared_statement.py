"""Statements that are planned once a connection."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.prepared_statement import PreparedStatement

ADD = PreparedStatement(
    "add", "SELECT :a + :b AS sum, CAST(:a AS text) AS said, '1%' AS share", a="integer", b="integer"
)


def test_a_statement_is_prepared_once_and_run_with_named_values(engine: Engine) -> None:
    """Values have their types, a percent sign stays one, and more values than needed do no harm."""
    with transaction(engine) as connection:
        answers = [ADD.rows(connection, {"a": a, "b": 2, "c": None}) for a in (1, 40)]

        names = connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements WHERE name = 'add'").scalar()

    assert [[{"sum": 3, "said": "1", "share": "1%"}], [{"sum": 42, "said": "40", "share": "1%"}]] == answers
    assert 1 == names


def test_binaries_are_bytes_and_nothing_is_none(engine: Engine) -> None:
    """What is compared with a digest must be comparable."""
    binary = PreparedStatement("binary_value", "SELECT :value AS value, :other AS other", value="bytea", other="bytea")

    with transaction(engine) as connection:
        rows = binary.rows(connection, {"value": b"\x00\xff", "other": None})

    assert [{"value": b"\x00\xff", "other": None}] == rows


def test_a_rolled_back_transaction_leaves_it_prepared(engine: Engine) -> None:
    """The server keeps it, and so does our note of it."""
    with engine.connect() as connection:
        ADD.rows(connection, {"a": 1, "b": 1})
        connection.rollback()

        [again] = ADD.rows(connection, {"a": 2, "b": 2})

    assert 4 == again["sum"]


def test_a_new_connection_prepares_anew(engine: Engine) -> None:
    """A pool that has lost its connections starts from nothing."""
    with transaction(engine) as connection:
        ADD.rows(connection, {"a": 1, "b": 1})
    engine.dispose()

    with transaction(engine) as connection:
        [answer] = ADD.rows(connection, {"a": 2, "b": 3})

    assert 5 == answer["sum"]


@pytest.mark.parametrize("types", [{"a": "integer"}, {"a": "integer", "b": "integer", "c": "integer"}])
def test_types_that_do_not_match_the_parameters_are_refused(types: dict[str, str]) -> None:
    """When the module is loaded, not when the statement runs."""
    with pytest.raises(ValueError, match="in the statement or in the types only"):
        PreparedStatement("odd", "SELECT :a + :b", **types)


def test_what_breaks_a_rule_is_told_as_sqlalchemy_tells_it(engine: Engine) -> None:
    """Whoever calls sees one kind of error, whichever way the statement went; the transaction is rolled back."""
    twice = PreparedStatement(
        "twice",
        "INSERT INTO scheduler_lease (name, holder, epoch, expires_at)"
        " SELECT :name, '', 1, now() FROM generate_series(1, 2) RETURNING name",
        name="text",
    )

    with pytest.raises(IntegrityError), transaction(engine) as connection:
        twice.rows(connection, {"name": "x"})

    with transaction(engine) as connection:
        assert 0 == connection.exec_driver_sql("SELECT count(*) FROM scheduler_lease").scalar()


def test_a_lost_connection_is_a_store_that_does_not_answer(engine: Engine) -> None:
    """And the pool gets another one."""
    with pytest.raises(StoreUnavailable), transaction(engine) as connection:
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid(), 0) FROM pg_sleep(0)").close()
        ADD.rows(connection, {"a": 1, "b": 1})

    with transaction(engine) as connection:
        assert [2] == [row["sum"] for row in ADD.rows(connection, {"a": 1, "b": 1})]


def test_a_plan_made_for_a_small_table_serves_a_large_one(engine: Engine) -> None:
    """A generic plan stays when the table grows: it looks rows up by their key from the first row on."""
    look_up = PreparedStatement(
        "look_up", "SELECT status FROM coupon_order WHERE user_id = :user_id AND order_no = 'o'", user_id="text"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE coupon_order")

    with transaction(engine) as connection:
        look_up.rows(connection, {"user_id": "ann"})
        plan = list(connection.exec_driver_sql("EXPLAIN EXECUTE look_up ('ann')").scalars())

    assert [] == [line for line in plan if "Seq Scan" in line]
