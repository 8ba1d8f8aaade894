"""``coupon-workers reconcile`` against the run's servers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from coupon_workers.cli.main import main
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from tests.support.closing import ClosingShop

Run = Callable[..., Result]

DAY = "2025-11-11"


@pytest.fixture
def run(settings: Settings, services: Services) -> Run:
    """Run ``coupon-workers reconcile`` with these words."""
    env = {
        name: getattr(settings, field).get_secret_value()
        for name, field in ((DATABASE_URL, "database_url"), (REDIS_URL, "redis_url"), (BROKER_URL, "broker_url"))
    }
    return lambda *words: CliRunner().invoke(main, ("reconcile", *words), env=env)


@pytest.fixture
def shop(services: Services) -> ClosingShop:
    """An order of a day long ago for the machine's clock, of which no statement came."""
    shop = ClosingShop(services).at(f"{DAY}T12:00+08:00")
    shop.buy("o1", shop.template())
    return shop


def test_a_table_shows_what_differs(run: Run, shop: ClosingShop) -> None:
    """Exit 1, as something is left open; what agrees takes one line, and exits 0."""
    orders, batches = run("orders", "--date", DAY), run("batches")

    assert (1, 0) == (orders.exit_code, batches.exit_code), orders.output + batches.output
    assert f"orders of {DAY} as of " in orders.output and "1 examined, 1 differ, 1 new, 0 gone" in orders.output
    [line] = [line.split() for line in orders.output.splitlines() if "statement_missing" in line]
    assert ["1", "statement_missing", "day", DAY, "by", "hand", "open"] == line
    assert "POST /v1/findings/ID/approve or /ignore" in orders.output
    assert ["0 examined, 0 differ, 0 new, 0 gone"] == [
        line.partition(": ")[2] for line in batches.output.splitlines() if line.startswith("batches as of")
    ]


def test_a_safe_difference_is_repaired_and_shown(run: Run, shop: ClosingShop) -> None:
    """Nothing is left open, so it exits 0."""
    shop.execute("UPDATE coupon_template SET issued_quantity = 3, created_at = now() - interval '1 day'")

    stock = run("stock")

    [line] = [line.split() for line in stock.output.splitlines() if "issued_counter_differs" in line]
    assert (0, ["recount_template", "repaired"]) == (stock.exit_code, line[-2:])
    assert "approve" not in stock.output
    assert [(1,)] == shop.rows("SELECT issued_quantity FROM coupon_template")


def test_programs_get_json_or_csv(run: Run, shop: ClosingShop) -> None:
    """In the forms of the API. The same moment again is the same run."""
    words = ("orders", "--date", DAY, "--as-of", "2025-11-12T12:00:00+08:00")
    first, again = (json.loads(run(*words, "--json").stdout) for _ in range(2))
    lines = list(csv.DictReader(io.StringIO(run(*words, "--csv").stdout)))

    assert first == again
    assert ("2025-11-12T04:00:00Z", 1, "done") == (first["as_of"], first["found"], first["status"])
    assert [finding["finding_id"] for finding in first["findings"]] == [line["finding_id"] for line in lines]
    assert ["statement_missing"] == [line["class"] for line in lines]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("money",), "'money' is not one of"),
        (("orders",), "date: is required: the day of the orders"),
        (("stock", "--date", DAY), "date: is for orders only"),
        (("orders", "--date", "yesterday"), "'yesterday' must be a day of the years 2000 to 2999"),
        (("state", "--as-of", "noon"), "is no instant"),
        (("state", "--as-of", "2025-11-12T12:00:00"), "has no offset"),
        (("state", "--as-of", "2999-01-01T00:00:00Z"), "must not lie in the future"),
        (("state", "--json", "--csv"), "not both"),
        ((), "KIND"),
    ],
)
def test_what_cannot_be_compared_is_said_in_words(
    run: Run, shop: ClosingShop, words: tuple[str, ...], told: str
) -> None:
    """Exit 2 for a wrong command; nothing is written down."""
    result = run(*words)

    assert (2, True) == (result.exit_code, told in result.stderr), result.output
    assert [(0,)] == shop.rows("SELECT count(*) FROM recon_run")
