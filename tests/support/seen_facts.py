"""What tests have seen, told at the end of the run: it goes with their reports, from whichever worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

_NAME = "seen"


def note_facts(node: pytest.Item, facts: Mapping[str, object]) -> None:
    """Have ``facts`` told of a test; to be called in it or at its end."""
    node.user_properties.append((_NAME, ", ".join(f"{key} {value}" for key, value in facts.items())))


def tell_facts(terminal: Any, title: str) -> None:
    """Write what was noted to pytest's ``terminal``, a line for each test, in the order of their names."""
    reports = (report for reports in terminal.stats.values() for report in reports)
    ended = [report for report in reports if getattr(report, "when", "") == "teardown"]
    told = [(report.nodeid, text) for report in ended for name, text in report.user_properties if name == _NAME]
    if told:
        terminal.section(title)
    for node_id, text in sorted(told):
        terminal.write_line(f"{node_id.rpartition('::')[2]}: {text}")
