"""``coupon-workers close`` against the run's servers."""

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
from tests.support.closing import ClosingShop, cart

Run = Callable[..., Result]


@pytest.fixture
def run(settings: Settings, services: Services) -> Run:
    """Run ``coupon-workers close`` with these words."""
    env = {
        name: getattr(settings, field).get_secret_value()
        for name, field in ((DATABASE_URL, "database_url"), (REDIS_URL, "redis_url"), (BROKER_URL, "broker_url"))
    }
    return lambda *words: CliRunner().invoke(main, ("close", *words), env=env)


@pytest.fixture
def shop(services: Services) -> ClosingShop:
    """A day with orders in yuan, yen and dinars, long ago for the machine's clock."""
    shop = ClosingShop(services).at("2025-11-11T12:00+08:00")
    shop.buy("o1", shop.template(amount_minor=123_456, threshold_minor=0), lines=cart(200_000))
    for currency, amount in (("JPY", 1_500), ("KWD", 1_500)):
        template = shop.template(currency=currency, amount_minor=amount, threshold_minor=0)
        shop.buy(f"o-{currency}", template, lines=cart(5_000), currency=currency)
    return shop


def test_a_table_shows_money_with_the_decimals_of_its_currency(run: Run, shop: ClosingShop) -> None:
    """A line a template, a total a currency; the same again when it is asked again."""
    first, second = run("2025-11-11"), run("2025-11-11")

    assert (0, 0, first.output) == (first.exit_code, second.exit_code, second.output)
    assert "2025-11-11 is closed: revision 1, at " in first.output and "by command line" in first.output
    totals = [line.split() for line in first.output.splitlines() if "total" in line]
    assert [["total", "CNY"], ["total", "JPY"], ["total", "KWD"]] == [total[:2] for total in totals]
    assert ["1,234.56", "1,500", "1.500"] == [total[-2] for total in totals]


def test_a_day_on_which_nothing_happened_is_said_to_be_one(run: Run, shop: ClosingShop) -> None:
    """Instead of a table without a line."""
    closed = run("2025-11-10")

    assert (0, 2) == (closed.exit_code, len(closed.output.splitlines())), closed.output
    assert "No coupon was issued" in closed.output


def test_programs_get_json_or_csv(run: Run, shop: ClosingShop) -> None:
    """In the forms of the API, in minor units."""
    closed = json.loads(run("2025-11-11", "--json").stdout)
    lines = list(csv.DictReader(io.StringIO(run("2025-11-11", "--csv").stdout)))

    assert [row["expense_net"] for row in closed["rows"]] == [int(line["expense_net"]) for line in lines]
    assert [123_456, 1_500, 1_500] == [total["expense_net"] for total in closed["totals"]]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("2999-12-31",), 1, "2999-12-31 can be closed from 2999-12-31T16:02:00Z on"),
        (("yesterday",), 2, "'yesterday' must be a day of the years 2000 to 2999"),
        (("2025-11-11", "--json", "--csv"), 2, "not both"),
        ((), 2, "DATE"),
    ],
)
def test_what_cannot_be_closed_is_said_in_words(
    run: Run, shop: ClosingShop, words: tuple[str, ...], code: int, told: str
) -> None:
    """Exit 2 for a wrong command, 1 for a day that goes on; nothing is closed then."""
    result = run(*words)

    assert (code, True) == (result.exit_code, told in result.stderr), result.output
    assert [(0,)] == shop.rows("SELECT count(*) FROM daily_close")
