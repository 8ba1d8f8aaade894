"""What is under deploy/ agrees with the code: commands, settings, metrics, runbooks."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from coupon_workers.embedded.procfile import BUILT_IN, RELEASE
from coupon_workers.runtime.settings import PREFIX, Settings
from tests.tidy.checkout import ROOT, deploy_files, name_of
from tests.tidy.markdown import read, table_rows

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
ALERTS: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))[
    "groups"
][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "coupon-workers.json").read_text(encoding="utf-8"))
OF_PROMETHEUS = {"le", "instance", "job"}
HISTOGRAM_PARTS = ("bucket", "sum", "count")


def unit(path: Path) -> ConfigParser:
    """A unit, parsed. Keys are as they are written; none is there twice but those of systemd that may be."""
    parser = ConfigParser(strict=True, interpolation=None, comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as configparser's own documents do
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser


def programs() -> dict[str, list[str]]:
    """The Procfile's commands, by the name that units and services have for them."""
    lines = (line.split(": ", 1) for line in BUILT_IN.splitlines())  # which a test holds equal to the file
    return {"migrate" if name == RELEASE else name: shlex.split(command) for name, command in lines}


def documented_metrics() -> dict[str, set[str]]:
    """Metric → its labels, as operations.md has it; a test holds it equal to what a front exposes."""
    rows = table_rows(read(ROOT / "docs" / "operations.md").section("What to watch"))
    named = [(re.findall(r"`(coupon_\w+)`", row[0]), row[1]) for row in rows]
    return {
        f"{name}_{part}" if "histogram" in kind else name: set(re.findall(r"by `(\w+)`", kind))
        for names, kind in named
        for name in names
        for part in (HISTOGRAM_PARTS if "histogram" in kind else ("",))
    }


def expressions() -> dict[str, str]:
    """Every question to Prometheus, by where it stands. A dashboard's interval is one for this."""
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    asked = {
        f"{panel['title']} {target['refId']}": target["expr"].replace("$__rate_interval", "1m")
        for panel in panels
        for target in panel["targets"]
    }
    return asked | {rule["alert"]: rule["expr"] for rule in ALERTS}


def test_units_run_the_commands_of_the_procfile() -> None:
    """Each its own, from an environment of its own."""
    ran = {path.stem.removeprefix("coupon-workers-"): shlex.split(unit(path)["Service"]["ExecStart"]) for path in UNITS}

    assert programs() == {name: [Path(command[0]).name, *command[1:]] for name, command in ran.items()}


def test_services_of_compose_run_the_commands_of_the_procfile() -> None:
    """All of one image."""
    ours = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "coupon-workers"}

    assert programs() == {name: service["command"] for name, service in ours.items()}


def test_the_image_has_all_that_is_installed() -> None:
    """Every package of ours, and what its building reads; nothing that is not there."""
    lines = (DEPLOY / "Containerfile").read_text(encoding="utf-8").splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}

    assert set() == {name for name in copied if not (ROOT / name).exists()}
    assert packages | {"pyproject.toml", "constraints.txt", project["project"]["readme"]} <= copied
    assert set(project["project"]["license-files"]) <= copied


@pytest.mark.parametrize("path", deploy_files(), ids=name_of)
def test_settings_that_are_named_exist(path: Path) -> None:
    """A variable with a mistake in it would be no setting at all."""
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", path.read_text(encoding="utf-8")))

    assert set() == named - {f"{PREFIX}{field.upper()}" for field in Settings.model_fields}


def test_the_example_of_settings_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands: with the values changed it is a host's."""
    lines = (DEPLOY / "env.example").read_text(encoding="utf-8").splitlines()
    for name, _, value in (line.partition("=") for line in lines if not line.startswith("#")):
        monkeypatch.setenv(name, value)

    assert "0.0.0.0" == Settings().http_host


def test_a_supervisor_waits_for_longer_than_a_process_takes_to_end() -> None:
    """A worker has ten seconds for the drain in hand, a front five for its requests."""
    least_s = {"worker": 10, "web": 5, "scheduler": 3}

    for name, seconds in least_s.items():
        stop_s = unit(DEPLOY / "systemd" / f"coupon-workers-{name}.service")["Service"]["TimeoutStopSec"]
        assert int(stop_s) > seconds
        assert int(COMPOSE["services"][name]["stop_grace_period"].rstrip("s")) > seconds


def test_the_rabbitmq_of_compose_waits_for_longer_than_any_message_takes() -> None:
    """One that gave up on a worker before the actor's own limit would have the work begin anew each time."""
    arguments = COMPOSE["services"]["rabbitmq"]["environment"]["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"].split()
    waits_ms = int(arguments[arguments.index("consumer_timeout") + 1])
    actors = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "actors").glob("*.py"))
    limits_ms = [int(limit) for limit in re.findall(r"(?:time_limit|TIME_LIMIT_MS) ?= ?([\d_]+)", actors)]

    assert waits_ms > max(limits_ms) > 1_800_000  # the server's own
    assert f"consumer_timeout = {waits_ms}" in (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_the_redis_of_compose_keeps_claims() -> None:
    """As operations.md asks for it."""
    command = COMPOSE["services"]["redis"]["command"]
    asked = [line.split("#")[0].split() for line in _redis_block().splitlines() if line.strip()]

    for name, value in asked:
        assert value == command[command.index(f"--{name}") + 1]


def _redis_block() -> str:
    [block] = [block for block in read(ROOT / "docs" / "operations.md").blocks if "appendonly" in block.text]
    return block.text


@pytest.mark.parametrize("where", expressions())
def test_questions_to_prometheus_can_be_answered(where: str) -> None:
    """They parse, and name metrics and labels that a front exposes."""
    metrics = documented_metrics()

    for selector in selectors(promql.parse(expressions()[where])):
        labels = {matcher.name for matcher in selector.matchers.matchers}
        if selector.name != "up":
            assert selector.name in metrics
            assert labels <= metrics[selector.name]
    for grouping in re.findall(r"\bby \(([^)]*)\)", expressions()[where]):
        assert {label.strip() for label in grouping.split(",")} <= {*OF_PROMETHEUS}.union(*metrics.values())


def test_every_metric_is_looked_at() -> None:
    """On the dashboard or by an alert: what nobody looks at need not be told."""
    asked = {selector.name for expression in expressions().values() for selector in selectors(promql.parse(expression))}
    base = {re.sub(rf"_(?:{'|'.join(HISTOGRAM_PARTS)})$", "", name) for name in asked}

    assert set() == {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in documented_metrics()} - base


def selectors(expression: Any) -> Iterator[Any]:
    """Every vector that an expression takes from Prometheus."""
    if isinstance(expression, promql.VectorSelector):
        yield expression
    for name in ("expr", "lhs", "rhs", "vector_selector", "param"):
        part = getattr(expression, name, None)
        if part is not None and not isinstance(part, str):
            yield from selectors(part)
    for part in getattr(expression, "args", None) or ():
        yield from selectors(part)


def test_every_alert_has_a_runbook() -> None:
    """A heading of docs/runbook.md, which lists the alert with its severity."""
    runbook = read(ROOT / "docs" / "runbook.md")
    listed = {
        row[0].strip("`"): (row[2], re.findall(r"\(#(.+)\)", row[3])[0])
        for row in table_rows(runbook.section("Alerts"))
    }

    named = {}
    for rule in ALERTS:
        file, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert ("docs/runbook.md", True) == (file, anchor in runbook.anchors), rule["alert"]
        assert rule["annotations"]["summary"]
        named[rule["alert"]] = (rule["labels"]["severity"], anchor)
    assert listed == named


def test_the_dashboard_has_each_panel_once() -> None:
    """An id each, and no two at one place."""
    panels = DASHBOARD["panels"]

    assert len(panels) == len({panel["id"] for panel in panels})
    assert len(panels) == len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels})


def test_prometheus_loads_the_alerts_it_is_given() -> None:
    """From the folder of its configuration."""
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))

    assert [] == [file for file in config["rule_files"] if not (DEPLOY / "prometheus" / file).exists()]
    assert "/metrics" == config["scrape_configs"][0]["metrics_path"]
    assert config["scrape_configs"][0]["job_name"] in ALERTS[0]["expr"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus' own checker is not installed")
def test_prometheus_itself_takes_the_alerts() -> None:
    """Its templates too, which the parser above does not read."""
    subprocess.run(["promtool", "check", "rules", str(DEPLOY / "prometheus" / "alerts.yml")], check=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    """With a program that is here in the place of ours, as it looks for programs too."""
    for path in (DEPLOY / "systemd").iterdir():
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    names = sorted(str(path) for path in tmp_path.iterdir())

    done = subprocess.run(["systemd-analyze", "verify", *names], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
