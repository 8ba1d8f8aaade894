"""Alerts on what is rare are raised the first time that it happens."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from coupon_workers.runtime.work_meter import COUNTS
from tests.tidy.checkout import ROOT

RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"


def alerts() -> list[dict[str, Any]]:
    """Every rule."""
    rules: list[dict[str, Any]] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    return rules


def rare_series() -> list[tuple[str, str]]:
    """Alerts on the first rise of a count, with a series that they look at."""
    risen = [rule for rule in alerts() if "increase(" in rule["expr"] and rule["expr"].rstrip().endswith("> 0")]
    return [
        (rule["alert"], f'{metric}{{{label}="{word}"}}')
        for rule in risen
        for metric, label, words in re.findall(r'(\w+){(\w+)=~"([^"]+)"}', rule["expr"])
        for word in words.split("|")
    ]


def test_what_alerts_by_its_first_rise_is_told_before_it() -> None:
    """A series that appears with its first value has not risen, for Prometheus."""
    told = {f'{kind.name}_total{{{kind.label}="{word}"}}' for kind in COUNTS for word in kind.words}

    assert rare_series()
    assert set() == {series for _, series in rare_series()} - told


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus' own checker is not installed")
@pytest.mark.parametrize(("alert", "series"), rare_series())
def test_an_alert_is_raised_by_the_first_rise(tmp_path: Path, alert: str, series: str) -> None:
    """By Prometheus' own reckoning: seven at once, after zero."""
    [rule] = [rule for rule in alerts() if rule["alert"] == alert]
    word = series.partition('"')[2].rstrip('"}')
    told = {name: re.sub(r"{{ *\$labels\.\w+ *}}", word, text) for name, text in rule["annotations"].items()}
    fired = {"exp_labels": {"severity": "ticket", "end": word}, "exp_annotations": told}
    case = {
        "interval": "15s",
        "input_series": [{"series": series, "values": "0x4 7x20"}],
        "alert_rule_test": [
            {"eval_time": "30s", "alertname": alert, "exp_alerts": []},
            {"eval_time": "2m", "alertname": alert, "exp_alerts": [fired]},
        ],
    }
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": [case]}))

    subprocess.run(["promtool", "test", "rules", str(file)], check=True)
