"""The documents run: their shell blocks, in order, against a running installation, with the answers they show."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coupon_workers.embedded.running_system import RunningSystem
from tests.tidy.checkout import ROOT
from tests.tidy.markdown import RUN, RUN_PYTHON, Block, Document, read, table_rows
from tests.tidy.postman import run_collection
from tests.tidy.reader_shell import run_in_one_shell

ANYTHING = "…"
"""Stands for any value, for any part of a text, and at the end of a list for any further items."""


EXAMPLES = ROOT / "docs" / "examples"

KEY = "KEY=$(coupon-workers keys create --name examples --scope admin --scope storefront --scope orders)"

METRICS = """
KEY=$(coupon-workers keys create --name metrics --scope ops --scope storefront)
curl -s -X POST http://127.0.0.1:8000/v1/claims -H "Authorization: Bearer $KEY" --json '{
  "template_id": "1", "user_id": "u-1", "request_id": "r-1"}' > /dev/null
curl -s http://127.0.0.1:8000/metrics -H "Authorization: Bearer $KEY"
"""


@pytest.mark.parametrize("name", ["README.md", "docs/api-guide.md"])
def test_the_examples_of_a_document_do_what_it_says(name: str, installation: RunningSystem, tmp_path: Path) -> None:
    """Each ``sh run`` block succeeds, and a ``json`` or ``text`` block right after it shows what it prints."""
    document = read(ROOT / name)
    blocks = [block for block in document.blocks if block.info == RUN]

    outputs = run_in_one_shell([block.text for block in blocks], installation, tmp_path)

    printed = zip(blocks, outputs, strict=True)
    assert [] == [problem for block, output in printed for problem in differences_from_shown(document, block, output)]
    assert blocks


def test_the_client_s_examples_do_what_they_say(installation: RunningSystem, tmp_path: Path) -> None:
    """Its blocks of Python are one program, for a key that the block of shell before them has made."""
    document = read(ROOT / "docs" / "client.md")
    [key] = [block.text for block in document.blocks if block.info == RUN]
    program = "".join(block.text for block in document.blocks if block.info == RUN_PYTHON)

    script = f"{key}export KEY\npython - <<'END'\nimport os\nKEY = os.environ['KEY']\n{program}\nEND\n"
    run_in_one_shell([script], installation, tmp_path)

    assert "CouponClient(" in program


def test_the_examples_for_httpie_run(installation: RunningSystem, tmp_path: Path) -> None:
    """One script, line by line as it says."""
    script = f"{KEY}\nRUN=httpie API=http://127.0.0.1:8000 KEY=$KEY sh '{EXAMPLES / 'claim-and-pay.sh'}'"

    [output] = run_in_one_shell([script], installation, tmp_path)

    assert ["active", "issued", "None", "2000", "locked", "28000", "28000"] == output.split()


def test_the_postman_collection_runs(installation: RunningSystem, tmp_path: Path) -> None:
    """Every request, in order, with the variables that earlier answers set."""
    [output] = run_in_one_shell([f'{KEY}\necho "$KEY"'], installation, tmp_path)
    collection = EXAMPLES / "coupon-workers.postman_collection.json"

    done = run_collection(collection, api=installation.base_url, key=output.strip(), run="postman")

    assert 13 == len(done)


def test_every_metric_to_watch_is_there(installation: RunningSystem, tmp_path: Path) -> None:
    """What operations.md tells to watch is what a front exposes, and the other way round."""
    [exposition] = run_in_one_shell([METRICS], installation, tmp_path)
    exposed = set(re.findall(r"^# TYPE (\w+)", exposition, re.MULTILINE))

    section = read(ROOT / "docs" / "operations.md").section("What to watch")

    rows = [(re.findall(r"`(coupon_\w+)`", row[0]), re.findall(r"by `(\w+)`", row[1])) for row in table_rows(section)]
    documented = {name: labels for names, labels in rows for name in names}
    assert exposed == documented.keys()
    for name, labels in labels_of_series(exposition).items():
        assert set(documented[name]) == labels, name


def labels_of_series(exposition: str) -> dict[str, set[str]]:
    """Metric → the labels its series have, but for the bound of a bucket."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(
        r"^(coupon_\w+?)(?:_bucket|_count|_sum)?(?:\{(.*)\})? \S+$", exposition, re.MULTILINE
    ):
        if not name.endswith("_created"):
            found.setdefault(name, set()).update(set(re.findall(r'(\w+)="', labels)) - {"le"})
    return found


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
