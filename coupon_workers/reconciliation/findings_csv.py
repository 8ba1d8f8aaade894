"""Findings as a file for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable

from coupon_workers.campaigns.failure_file import without_formula
from coupon_workers.reconciliation.finding_reading import FindingAnswer

FINDING_HEADER = (
    "finding_id", "kind", "class", "subject", "date", "template_id", "user_id", "order_no", "coupon_no", "amount",
    "currency", "repair", "state", "seen_as_of", "seen_count", "opened_at", "closed_at", "decided_by", "comment",
    "evidence", "outcome",
)  # fmt: skip


def findings_csv(findings: Iterable[FindingAnswer]) -> str:
    """A line a finding (RFC 4180), amounts in minor units, evidence and outcome as JSON."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(FINDING_HEADER)
    for finding in findings:
        shown = finding.model_dump(mode="json")
        writer.writerow([_cell(shown[name]) for name in FINDING_HEADER])
    return file.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return without_formula(value) if isinstance(value, str) else value
