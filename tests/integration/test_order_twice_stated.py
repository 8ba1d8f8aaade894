"""An order in the statements of two days: what one of them says stands, whatever becomes of the other's."""

from __future__ import annotations

import pytest

from coupon_workers.runtime.services import Services
from tests.support.closing import ClosingShop
from tests.support.statement import Comparison

DAY, NEXT, LATER = "2026-11-11", "2026-11-12", "2026-11-14"
PAID = "x,ann,paid,1,1,CNY"
OPEN, RESOLVED = ("discount_without_redemption", "open"), ("discount_without_redemption", "resolved")


@pytest.fixture
def compared(services: Services) -> Comparison:
    """A shop some days later, that knows nothing of the order."""
    return Comparison(ClosingShop(services).at("2026-11-15T09:00+08:00"))


def reconcile(compared: Comparison, *days: str) -> None:
    """A run of each day, a minute after the one before."""
    for day in days:
        compared.shop.clock.pass_by(minutes=1)
        compared.reconcile(day)


@pytest.mark.parametrize("corrected", [DAY, LATER])
def test_what_one_days_statement_takes_back_the_other_says_still(compared: Comparison, corrected: str) -> None:
    """Each day has its finding, with its own date in the evidence, and ends no other's."""
    other = LATER if corrected == DAY else DAY
    for day in (DAY, LATER):
        compared.give(day, PAID)
    reconcile(compared, DAY, LATER, DAY)

    compared.give(corrected)
    reconcile(compared, corrected)

    assert [[RESOLVED], [OPEN]] == [compared.states(corrected), compared.states(other)]
    [left] = [each for each in compared.findings(other) if each.state == "open"]
    assert other == left.evidence["there"]["date"]


@pytest.mark.parametrize("first", [DAY, NEXT])
def test_the_neighbours_finding_stays_whichever_run_is_first(compared: Comparison, first: str) -> None:
    """The next day's statement speaks for both; its run and the day's own are under way at once."""
    compared.give(DAY, PAID)
    reconcile(compared, DAY)

    compared.give(NEXT, PAID)
    reconcile(compared, *sorted((DAY, NEXT), reverse=first == NEXT))

    assert [[RESOLVED], [OPEN]] == [compared.states(DAY), compared.states(NEXT)]
