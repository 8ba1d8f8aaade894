"""A page of the newest rows, as the database is asked for it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Select
from sqlalchemy.dialects import postgresql

from coupon_workers.runtime.newest_page import newest
from coupon_workers.schema import RiskVerdict


def _behind_from(wanted: Select[Any]) -> str:
    spelt = str(wanted.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}))
    return " ".join(spelt.partition("FROM risk_verdict")[2].replace("risk_verdict.", "").split())


def test_the_first_page_is_of_all_that_there_is() -> None:
    """What is not asked for narrows nothing down."""
    wanted = newest(RiskVerdict.verdict_id, limit=2, before=None, rule=None, user_id=None)

    assert "ORDER BY verdict_id DESC LIMIT 2" == _behind_from(wanted)


def test_a_later_page_begins_below_the_one_before_it() -> None:
    """Of what is asked for, also where that is false."""
    wanted = newest(RiskVerdict.verdict_id, limit=2, before=7, rule="d1", user_id=None, shadow=False)

    assert "WHERE verdict_id < 7 AND rule = 'd1' AND shadow = false ORDER BY verdict_id DESC LIMIT 2" == _behind_from(
        wanted
    )


def test_a_column_that_there_is_not_is_a_mistake() -> None:
    """Nothing is left out in silence."""
    with pytest.raises(KeyError):
        newest(RiskVerdict.verdict_id, limit=2, before=None, colour="red")
