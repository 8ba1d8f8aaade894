"""The Makefile, the README, the Procfile and CI say the same."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.tidy.checkout import ROOT
from tests.tidy.markdown import read, table_rows

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
READMES = ("README.md", "README.zh-CN.md")


def recipe(target: str) -> list[str]:
    """The commands of a rule, with variables replaced; those that only tell something or check are left out."""
    rule = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert rule is not None
    lines = [line for line in rule[1].splitlines() if not line.startswith("\t@")]
    return [_expanded(line.strip()) for line in lines]


def _expanded(command: str) -> str:
    variables = dict(re.findall(r"^(\w+) [:?]= (.+)$", MAKEFILE, re.MULTILINE))
    return re.sub(r"\$\((\w+)\)", lambda match: variables[match[1]], command)


def targets() -> list[str]:
    """What a person may ask for."""
    assert TARGETS is not None
    return TARGETS[1].split()


def test_the_targets_are_the_promised_ones() -> None:
    """No more, no fewer."""
    assert ["demo", "demo-full", "demo-serve", "run", "test", "bench", "lint"] == targets()


@pytest.mark.parametrize("readme", READMES)
def test_the_readme_shows_each_target_as_plain_commands(readme: str) -> None:
    """Whoever has no make can do the same."""
    rows = {row[0].strip("`"): row[1] for row in table_rows(read(ROOT / readme).text) if row[0].startswith("`make ")}

    assert [f"make {target}" for target in targets()] == list(rows)
    for target in targets():
        assert recipe(target) == re.findall(r"`([^`]+)`", rows[f"make {target}"])


@pytest.mark.parametrize("readme", READMES)
def test_the_readme_shows_the_set_up(readme: str) -> None:
    """As make does it."""
    assert "\n".join(recipe("$(READY)")) in read(ROOT / readme).text


def test_ci_calls_the_readmes_command() -> None:
    """CI tests what a person tests."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert "make test" in script.splitlines()[-1]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_ci_script_is_well_formed() -> None:
    """A mistake in a branch that is rarely taken shows here."""
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)
