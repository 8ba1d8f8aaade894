"""Orders by the hundred thousand, redeemed on one day, and the statement of them: for memory, time and plans.

Run as a program it takes a statement or compares its day in a process of its own, and tells how much memory it took.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import text

from coupon_workers.reconciliation.order_differences import read_orders
from coupon_workers.reconciliation.statement import take_statement
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.settings import Settings, read_settings
from tests.support.order_shop import OrderShop
from tests.support.statement import HEADER

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240

ORDERS = """
    INSERT INTO coupon_order (user_id, order_no, status, fingerprint, currency, lines, subtotal_minor, discount_minor,
                              payable_minor, payment_no, paid_at, redeemed_at, created_at, updated_at)
    SELECT 'user-' || n % :users, CAST(:name AS text) || n, 'redeemed', '\\x00', 'CNY', '[]', 15000, 2000, 13000, 'p',
           :at, :at, :at, :at
      FROM generate_series(1, :count) AS n"""
BOOKINGS = """
    INSERT INTO ledger_entry (user_id, order_no, coupon_id, template_id, kind, reference, debit_account, credit_account,
                              amount_minor, currency, business_date, at)
    SELECT 'user-' || n % :users, CAST(:name AS text) || n, n, :template, 'redeem', 'p', 'coupon_expense',
           'order_discount', 2000, 'CNY', :day, :at
      FROM generate_series(1, :count) AS n"""

HISTORY = """
    INSERT INTO ledger_entry (user_id, order_no, coupon_id, template_id, kind, reference, debit_account, credit_account,
                              amount_minor, currency, business_date, at)
    SELECT 'old-' || n, 'old-' || n, n, n % 7, 'redeem', 'p', 'coupon_expense', 'order_discount', 2000, 'CNY',
           CAST(:day AS date) - 10 - n % 300, CAST(:day AS date) - 10 - n % 300
      FROM generate_series(1, 60000) AS n"""

STATEMENT = """
    INSERT INTO order_statement_row (business_date, revision, user_id, order_no, line_no, status, paid_minor,
                                     discount_minor, currency)
    SELECT :day, 1, user_id, order_no, row_number() OVER () + 1, 'paid', payable_minor, discount_minor, currency
      FROM coupon_order"""


def heap(shop: OrderShop, day: str, count: int, users: int, name: str = "heap-") -> None:
    """So many orders, redeemed at noon in Shanghai, each with its booking."""
    named = {"count": count, "users": users, "name": name, "day": day, "at": f"{day}T12:00+08:00"}
    shop.execute(ORDERS, **{key: value for key, value in named.items() if key != "day"})
    shop.execute(BOOKINGS, **named, template=shop.template())


def lines(count: int, users: int, name: str = "heap-") -> Iterator[str]:
    """The statement's file of the same orders."""
    yield HEADER + "\r\n"
    for number in range(1, count + 1):
        yield f"{name}{number},user-{number % users},paid,13000,2000,CNY\r\n"


def in_child(settings: Settings, *words: str) -> dict[str, Any]:
    """Run ``take FILE DAY`` or ``compare DAY`` to its end. It tells ``count``, ``growth_mib`` and ``elapsed_s``."""
    urls = {name: getattr(settings, name).get_secret_value() for name in ("database_url", "redis_url", "broker_url")}
    child = subprocess.run(
        [sys.executable, "-m", "tests.support.statement_heap", *words],
        cwd=ROOT,
        env=os.environ | {f"COUPON_{name.upper()}": url for name, url in urls.items()},
        stdout=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=True,
    )
    told: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return told


def explained(shop: OrderShop, statement: Any, named: dict[str, Any]) -> str:
    """The plan of a reader's statement, under its settings."""
    with shop.services.engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off; SET LOCAL jit = off")
        return "\n".join(connection.scalars(text(f"EXPLAIN {statement.text}"), named))


def _peak_mib() -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def _main(what: str, *words: str) -> None:
    services = make_services(read_settings())
    before, began = _peak_mib(), time.monotonic()
    if what == "take":
        with Path(words[0]).open("rb") as file:
            count = take_statement(services, date.fromisoformat(words[1]), file, "centre").rows
    else:
        count = len(read_orders(services, utc_now(), date.fromisoformat(words[0])).differences)
    told = {"growth_mib": _peak_mib() - before, "elapsed_s": time.monotonic() - began, "count": count}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
