"""The examples of docs/money.md are true."""

from __future__ import annotations

import doctest

from tests.tidy.checkout import ROOT


def test_the_examples_of_the_money_rules_are_true() -> None:
    """Each prints what stands below it."""
    failed, tried = doctest.testfile(str(ROOT / "docs" / "money.md"), module_relative=False)

    assert (0, True) == (failed, tried >= 5)
