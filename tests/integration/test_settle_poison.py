"""Entries that no claim can be read from, and claims that cannot be stored: the others are issued all the same."""

from __future__ import annotations

from typing import Any

import pytest

from coupon_workers.claiming.claim_status import claim_status
from coupon_workers.runtime.services import Services
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.template import change_template

NOW_MS = 1_800_000_000_000
FOREIGN: dict[str, Any] = {"c": 4711, "u": "zoe", "r": "r1", "s": 1, "t": NOW_MS, "d": "", "e": 0, "h": ""}
MAX_ID = 2**63 - 1

POISON: dict[str, dict[str, Any]] = {
    "nothing of a claim": {"x": "y"},
    **{f"no {name}": {field: value for field, value in FOREIGN.items() if field != name} for name in FOREIGN},
    **{f"{name} is no number": FOREIGN | {name: "many"} for name in "cste"},
    **{f"{name} is empty": FOREIGN | {name: ""} for name in "custe"},
    **{f"{name} has fifty digits": FOREIGN | {name: "9" * 50} for name in "cst"},
    "a number that no integer of ours holds": FOREIGN | {"c": MAX_ID + 1},
    "a number below zero": FOREIGN | {"s": -1},
    "an instant beyond the calendar": FOREIGN | {"t": 253_402_300_799_999},
    "an instant at the end of the calendar": FOREIGN | {"t": 253_402_000_000_000},
    "a user in bytes that are no text": FOREIGN | {"u": b"\xff\xfe"},
    "a request in bytes that are no text": FOREIGN | {"r": b"\xc3("},
    "half of a surrogate pair": FOREIGN | {"u": b"\xed\xa0\x80"},
    "NUL in the user": FOREIGN | {"u": b"a\x00b"},
    "NUL in the request": FOREIGN | {"r": b"a\x00b"},
    "NUL in the channel": FOREIGN | {"h": b"a\x00b"},
    "a user with a space": FOREIGN | {"u": "a b"},
    "a user longer than an index can hold": FOREIGN | {"u": "".join(chr(0x4E00 + n) for n in range(3_000))},
    "a request longer than an index can hold": FOREIGN | {"r": "".join(chr(0x4E00 + n) for n in range(3_000))},
}


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units."""
    return open_sale(services)


@pytest.mark.parametrize("name", POISON)
def test_an_entry_no_claim_can_be_read_from_is_set_aside_with_the_reason(sale: Sale, name: str) -> None:
    """At the head of the stream and between claims; all of them are issued."""
    sale.add_entry(POISON[name])
    claim_ids = sale.claim_each(["ann", "bob"])
    entry_id = sale.add_entry(POISON[name])
    claim_ids += sale.claim_each(["cat"])

    sale.drain()

    aside = sale.rows("SELECT entry_id, reason <> '' AND payload <> '' FROM claim_set_aside ORDER BY entry_id")
    assert set(claim_ids) == sale.coupons().keys()
    assert (2, (entry_id, True)) == (len(aside), aside[1])
    assert (0, 7) == (sale.queued, sale.stock)
    assert_sound(sale.services)


def test_an_entry_set_aside_twice_is_kept_once(sale: Sale) -> None:
    """Its worker died before the acknowledgement."""
    entry_id = sale.add_entry({"x": "y"})
    sale.drain()
    sale.services.redis.xadd(sale.keys.pending, {"x": "y"}, id=entry_id.split("-")[0] + "-9")
    sale.drain()

    assert 2 == len(sale.rows("SELECT 1 FROM claim_set_aside"))
    assert 0 == sale.queued


def test_an_entry_under_the_number_of_a_coupon_of_its_user_is_set_aside(sale: Sale) -> None:
    """Another request with the same claim id: the number is taken, so it can neither be issued nor rejected."""
    claim_id = sale.claim("zoe", "r0").claim_id
    sale.add_entry(FOREIGN | {"c": claim_id, "s": 2})
    others = sale.claim_each(["ann", "bob"])

    sale.drain()

    assert {claim_id: "zoe", others[0]: "ann", others[1]: "bob"} == sale.coupons()
    assert ({}, 1) == (sale.rejections(), len(sale.rows("SELECT 1 FROM claim_set_aside")))
    assert (0, 7) == (sale.queued, sale.stock)
    assert_sound(sale.services)


def test_an_accepted_claim_that_cannot_be_stored_ends_as_rejected(services: Services) -> None:
    """What was answered 202 ends readably and gives back, whatever the database has against it (DESIGN 3.2)."""
    sale = open_sale(services, per_user_limit=1)
    claim_id = sale.claim("ann").claim_id
    at = "2026-11-11T00:00:00Z"
    change_template(services.engine, sale.template_id, validity={"mode": "fixed", "from": at, "to": at})

    sale.drain()

    status = claim_status(services, claim_id)
    assert status is not None
    assert ("rejected", "INVALID") == (status.status, status.reason)
    assert (10, 0, "0 1", f"{claim_id} INVALID") == (sale.stock, sale.queued, sale.taker("ann"), sale.answer("ann"))
    assert [("claim.rejected",)] == sale.rows("SELECT event FROM outbox")
    assert_sound(services)


def test_one_claim_that_cannot_be_stored_costs_few_transactions(services: Services) -> None:
    """It is found by halving, not by settling the thousand others one by one."""
    sale = open_sale(services, total_quantity=600)
    claim_id = sale.claim("zoe", "r0").claim_id
    sale.drain()
    claim_ids = sale.claim_each(f"u{number}" for number in range(300))
    sale.add_entry(FOREIGN | {"c": claim_id, "s": 2})
    claim_ids += sale.claim_each(f"v{number}" for number in range(200))
    before = _transactions(sale)

    sale.drain()

    assert {claim_id, *claim_ids} == sale.coupons().keys()
    assert _transactions(sale) - before < 60


def _transactions(sale: Sale) -> int:
    """How many transactions the database has begun."""
    with sale.services.engine.begin() as connection:
        return int(str(connection.exec_driver_sql("SELECT pg_current_xact_id()").scalar_one()))


def test_claims_of_a_template_that_is_not_there_are_set_aside(sale: Sale) -> None:
    """Somebody deleted the row by hand."""
    sale.claim_each(["ann", "bob"])
    with sale.services.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM coupon_template")

    assert 2 == sale.drain()
    assert [("there is no such template",)] * 2 == sale.rows("SELECT reason FROM claim_set_aside")
