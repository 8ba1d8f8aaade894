"""Whoever writes a step of a coupon's history notes whose wallet it changes, in the same statement."""

from __future__ import annotations

import re
from pathlib import Path

import coupon_workers

_STEP = re.compile(r"INSERT INTO coupon_flow \(|DELETE FROM coupon_flow ")
_NOTE = re.compile(r"\{noted\(")


def test_every_step_of_a_coupon_is_noted() -> None:
    """Counted in the text of each module; what only brings back or moves the schema is left out."""
    root = Path(coupon_workers.__file__).parent
    sources = [path for path in root.rglob("*.py") if "migrations" not in path.parts]
    counts = {path.name: [len(each.findall(path.read_text("utf-8"))) for each in (_STEP, _NOTE)] for path in sources}

    writing = {name: count for name, count in counts.items() if count != [0, 0]}
    assert {name: [steps, steps] for name, (steps, _) in writing.items()} == writing
    assert len(writing) > 5
