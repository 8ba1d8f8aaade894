"""A PostgreSQL that may only be read is unavailable to whoever writes."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import transaction


def test_a_database_that_may_only_be_read_is_unavailable_to_a_writer(engine: Engine) -> None:
    """A standby whose master is gone, for as long as nobody has made it the master: it passes."""
    with pytest.raises(StoreUnavailable, match="read-only"), transaction(engine) as connection:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        connection.exec_driver_sql("CREATE TABLE half_done (n integer)")
