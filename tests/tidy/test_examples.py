"""The documents run: their shell blocks, in order, against a running installation, with the answers they show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.support.http_system import System, environment
from tests.tidy.checkout import ROOT
from tests.tidy.markdown import RUN, Block, Document, read, table_rows

WRITTEN_ADDRESS = "http://127.0.0.1:8000"
TIMEOUT_S = 120
ANYTHING = "…"
"""Stands for any value, for any part of a text, and at the end of a list for any further items."""


@pytest.mark.parametrize("name", ["README.md", "docs/api-guide.md"])
def test_the_examples_of_a_document_do_what_it_says(name: str, installation: System, tmp_path: Path) -> None:
    """Each ``sh run`` block succeeds, and a ``json`` or ``text`` block right after it shows what it prints."""
    document = read(ROOT / name)

    printed = run_blocks(document, installation, tmp_path)

    assert [] == [problem for block, output in printed for problem in differences_from_shown(document, block, output)]
    assert printed


def test_every_metric_to_watch_is_there(installation: System) -> None:
    """What operations.md tells to watch is what a front exposes, and the other way round."""
    installation.front.ask("POST", "/v1/claims", {"template_id": "1", "user_id": "u-1", "request_id": "r-1"})

    exposition = installation.admin.ask("GET", "/metrics").body.decode()
    exposed = set(re.findall(r"^# TYPE (\w+)", exposition, re.MULTILINE))

    section = read(ROOT / "docs" / "operations.md").section("What to watch")
    documented = {name for row in table_rows(section) for name in re.findall(r"`(coupon_\w+)`", row[0])}
    assert {name.removesuffix("_total") for name in documented} == {name.removesuffix("_total") for name in exposed}


def run_blocks(document: Document, installation: System, folder: Path) -> list[tuple[Block, str]]:
    """Run the blocks in one shell, as a reader would; each with what it printed."""
    blocks = [block for block in document.blocks if block.info == RUN]
    lines = ["set -eu"]
    for number, block in enumerate(blocks):
        text = block.text.replace(WRITTEN_ADDRESS, installation.base_url)
        lines.append(f"{{\n{text}}} > {folder}/{number}")
    script = folder / "script.sh"
    script.write_text("\n".join([*lines, ""]), encoding="utf-8")
    done = subprocess.run(
        ["sh", str(script)],
        env=environment(installation.data_dir, PATH=programs(folder)),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    outputs = [folder / str(number) for number in range(len(blocks))]
    reached = blocks[sum(output.exists() for output in outputs) - 1]
    assert 0 == done.returncode, f"{document.path.name}, line {reached.line}: {done.stderr}"
    return [(block, output.read_text(encoding="utf-8")) for block, output in zip(blocks, outputs, strict=True)]


def programs(folder: Path) -> str:
    """A PATH on which the project's commands come first, and a curl that every machine has."""
    own = folder / "programs"
    own.mkdir()
    curl = own / "curl"
    stand_in = Path(__file__).with_name("curl_stand_in.py")
    curl.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{stand_in}" "$@"\n', encoding="utf-8")
    curl.chmod(0o755)
    folders = (str(own), str(Path(sys.executable).parent), sysconfig.get_path("scripts"), os.environ["PATH"])
    return os.pathsep.join(folders)


def differences_from_shown(document: Document, block: Block, output: str) -> list[str]:
    """Where ``output`` is not what the document shows right after the block; nothing is shown of some."""
    shown = next((after for after in document.blocks if after.start > block.start), None)
    if shown is None or document.prose_between(block, shown):
        return []
    where = f"{document.path.name}, line {shown.line}"
    if shown.info == "json":
        last_line = output.strip().splitlines()[-1]
        return [f"{where}: {difference}" for difference in differences(json.loads(shown.text), json.loads(last_line))]
    if shown.info == "text" and shown.text.strip() != output.strip():
        return [f"{where}: {output.strip()!r} was printed"]
    return []


def differences(shown: Any, actual: Any, path: str = "answer") -> list[str]:
    """Where ``actual`` lacks something of ``shown`` or has it otherwise; what is not shown may be there."""
    if shown == ANYTHING:
        return []
    if isinstance(shown, dict) and isinstance(actual, dict):
        missing = [f"{path} has no {name}" for name in shown if name not in actual]
        return missing + [
            difference
            for name in shown
            if name in actual
            for difference in differences(shown[name], actual[name], f"{path}.{name}")
        ]
    if isinstance(shown, list) and isinstance(actual, list):
        items = shown[:-1] if shown[-1:] == [ANYTHING] else shown
        if len(actual) < len(items) or (items is shown and len(actual) != len(items)):
            return [f"{path} has {len(actual)} items"]
        return [
            difference
            for number, item in enumerate(items)
            for difference in differences(item, actual[number], f"{path}.{number}")
        ]
    if isinstance(shown, str) and isinstance(actual, str):
        pattern = ".*".join(map(re.escape, shown.split(ANYTHING)))
        return [] if re.fullmatch(pattern, actual, re.DOTALL) else [f"{path} is {actual!r}"]
    return [] if type(shown) is type(actual) and shown == actual else [f"{path} is {actual!r}"]


@pytest.mark.parametrize(
    ("shown", "actual"),
    [
        ({"a": 1}, {}),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": True}),
        ({"a": "x…"}, {"a": "yx"}),
        ({"a": None}, {"a": "…"}),
        ([1], [1, 2]),
        ([1, 2, "…"], [1]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}),
    ],
)
def test_an_answer_that_differs_is_noticed(shown: Any, actual: Any) -> None:
    """The comparison above can fail."""
    assert differences(shown, actual)


def test_an_answer_may_have_more_than_is_shown() -> None:
    """Dots stand for anything, and what is left out is not said to be absent."""
    assert [] == differences({"a": "…", "b": ["x…", "…"]}, {"a": 7, "b": ["xyz", 1, 2], "c": None})
