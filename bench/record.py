"""The results for programs: every number of every round, and what they were made with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.row import RowResult
from bench.scale import Scale
from bench.verdict import judge
from coupon_workers.runtime.clock import rfc3339


def write_record(
    path: Path, began: datetime, environment: dict[str, Any], scale: Scale, results: Sequence[RowResult]
) -> None:
    """Write the JSON file, and its folder when it is missing."""
    record = {
        "began": rfc3339(began),
        "environment": environment,
        "scale": asdict(scale),
        "rows": [_row(result) for result in results],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _row(result: RowResult) -> dict[str, Any]:
    verdicts = [judge(result, comparison) for comparison in result.row.comparisons]
    return {
        "name": result.row.name,
        "about": result.row.about,
        "load_average": result.load_average,
        "failure": result.failure,
        "comparisons": [asdict(verdict) for verdict in verdicts if verdict is not None],
        "rounds": result.rounds,
    }
