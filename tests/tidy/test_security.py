"""docs/security.md says nothing that no test shows: each statement and each threat has its row, each row its tests."""

from __future__ import annotations

import re
from configparser import ConfigParser

from tests.tidy.checkout import ROOT
from tests.tidy.markdown import read, table_rows

PAGE = read(ROOT / "docs" / "security.md")
SHOWN_BY = "Shown by"

_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def _rows() -> list[list[str]]:
    return list(table_rows(PAGE.section(SHOWN_BY)))


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def test_every_row_names_tests_that_exist() -> None:
    """By file and name."""
    named = [(row[0], path, name) for row in _rows() for path, name in _TEST.findall(row[1])]

    assert {row[0] for row in _rows()} == {row for row, _, _ in named}
    for row, path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{row}: {path}::{name}"


def test_every_row_is_said_above() -> None:
    """In the same words: a statement that is changed is looked at again."""
    said = _squeezed(PAGE.text.partition(f"## {SHOWN_BY}")[0])

    assert [] == [row[0] for row in _rows() if row[0] not in said]


def test_every_threat_and_section_has_its_row() -> None:
    """A new threat cannot be left without a test."""
    shown = {row[0] for row in _rows()}
    threats = {row[0] for row in table_rows(PAGE.section("Threats"))} - {"owns PostgreSQL"}

    assert set() == threats - shown
    for heading in PAGE.headings[1:]:
        said = _squeezed(PAGE.section(heading))
        assert heading == SHOWN_BY or any(row in said for row in shown), heading


def test_units_and_the_image_run_as_a_user_without_rights() -> None:
    """Of its own, with no capability, and no way to gain one."""
    units = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
    image = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")

    assert units
    for path in units:
        parser = ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str  # type: ignore[assignment, method-assign]  # systemd's names have capitals
        parser.read_string(path.read_text(encoding="utf-8"))
        service = parser["Service"]
        assert ("coupon", "yes", "") == (service["User"], service["NoNewPrivileges"], service["CapabilityBoundingSet"])
    assert "root" != re.findall(r"^USER (\w+)$", image, re.MULTILINE)[-1]
