"""The Procfile is read line by line, and says what an installed package runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from coupon_workers.embedded.procfile import BUILT_IN, find_procfile, parse_procfile, read_procfile
from coupon_workers.errors import SettingsError

ROOT = Path(__file__).parents[2]


def test_comments_and_blank_lines_say_nothing() -> None:
    """Only `name: command` lines count; a command is split as a shell would, without one."""
    text = "# front\n\nweb: serve --name 'two words'\n  worker:   drain  \n"

    procfile = parse_procfile(text, ROOT)

    assert procfile.commands == {"web": ["serve", "--name", "two words"], "worker": ["drain"]}


def test_release_is_not_one_of_the_lasting_processes() -> None:
    """It is run once, the others are kept running."""
    procfile = parse_procfile("release: migrate now\nweb: serve\n", ROOT)

    assert procfile.release == ["migrate", "now"]
    assert procfile.lasting == {"web": ["serve"]}


def test_python_is_the_interpreter_that_runs_us() -> None:
    """A `python` found on the PATH may not have the packages."""
    procfile = parse_procfile("web: python -m web\n", ROOT)

    assert [sys.executable, "-m", "web"] == procfile.commands["web"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("web: a\nserve\n", "line 2: not `name: command`"),
        ("web: a\nweb: b\n", "line 2: web appears twice"),
        ("web: 'a\n", "line 1: No closing quotation"),
        ("web:\n", "line 1: not `name: command`"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text: str, complaint: str) -> None:
    """With its number and what is wrong with it."""
    with pytest.raises(SettingsError, match=complaint):
        parse_procfile(text, ROOT)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """By its name."""
    (tmp_path / "Procfile").write_bytes(b"web: caf\xe9\n")

    with pytest.raises(SettingsError, match=f"{tmp_path}/Procfile cannot be read"):
        read_procfile(tmp_path / "Procfile")


def test_the_repository_runs_what_is_built_in() -> None:
    """An installed package has no Procfile; it must not drift from the one people see."""
    built_in = parse_procfile(BUILT_IN, ROOT)

    assert built_in == find_procfile()
