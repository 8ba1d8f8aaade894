"""``coupon-workers demo``: the whole system from nothing, in its own words."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from coupon_workers.demo import full_demo, guarded_crowd
from coupon_workers.load.run_report import rules_of_a_run
from tests.support.mortal import mortal

RULES = rules_of_a_run() + 2
"""Those of the stores and of claims, and two of orders."""

STOPPED_BY = ("accounts_of_device", "flood_of_address", "block_list", "LIMIT_REACHED")
PRIZES = (
    "a hundred off",
    "three off",
    "a greeting card",
    "better luck next time",
    "none: what was drawn had run out",
)


def run_demo(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command, with data and logs in ``folder`` and no server given."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COUPON_")}
    return subprocess.run(
        [sys.executable, "-m", "coupon_workers.cli.main", "demo", "--data-dir", str(folder), *options],
        env={**environment, "COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def number(output: str, label: str) -> int:
    """The count in the report's line that begins with ``label``."""
    match = re.search(rf"│\s+{re.escape(label)}\s+│\s+([\d,]+)", output)
    assert match, f"no line {label!r} in:\n{output}"
    return int(match[1].replace(",", ""))


def test_a_sale_ends_with_every_rule_holding(tmp_path: Path) -> None:
    """Claims, repeats, retries, wrong bodies and a pause: the report adds up and every rule is ok."""
    done = run_demo(tmp_path, "--claims", "3000", "--orders", "1500")

    report = done.stdout
    refused = sum(int(calls.replace(",", "")) for calls in re.findall(r"│\s+refused \w+\s+│\s+([\d,]+)", report))
    accepted, replayed = number(report, "accepted (202)"), number(report, "replayed (200)")
    assert done.returncode == 0, report + done.stderr
    late = accepted + replayed + refused + number(report, "wrong bodies refused") - 3_000
    assert 0 <= late <= number(report, "rejected")  # units that the pause gave back after the last claim
    assert accepted == number(report, "issued") + number(report, "rejected")
    assert RULES == len(re.findall(r"│\s+ok\s+│", report))
    for code in ("SOLD_OUT", "LIMIT_REACHED", "DAILY_LIMIT_REACHED", "NOT_STARTED", "PAUSED"):
        assert number(report, f"refused {code}") > 0
    assert not re.search("Traceback|Error", done.stderr)
    assert re.fullmatch(r"all rules hold after \d+ s", report.splitlines()[-1])


@pytest.mark.parametrize("seed", [1])
def test_a_sale_under_kills_ends_with_every_rule_holding(tmp_path: Path, seed: int) -> None:
    """A random process is killed each second while claims come in; nothing is lost, doubled or over-issued."""
    done = run_demo(
        tmp_path, "--claims", "3000", "--orders", "1500", "--rate", "200", "--kill-every", "1", "--seed", str(seed)
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert RULES == len(re.findall(r"│\s+ok\s+│", done.stdout))
    assert len(re.findall(r"killed \w+", done.stdout)) >= 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_stopped_leaves_nothing_running(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C, SIGTERM and a closed terminal in the middle of the sale end every server and process that was started."""
    command = mortal(
        sys.executable, "-m", "coupon_workers.cli.main", "demo", "--data-dir", str(tmp_path), "--rate", "50"
    )
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "ready" in process.stdout.readline()
    started = psutil.Process(process.pid).children(recursive=True)

    process.send_signal(number)
    process.communicate(timeout=60)

    assert process.returncode == 130
    assert len(started) >= 6
    assert not [child for child in started if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


def cells(output: str, label: str) -> list[str]:
    """The cells of the report's line that begins with ``label``, without it."""
    lines = [line for line in output.splitlines() if re.match(rf"│\s+{re.escape(label)}\s+│", line)]
    assert lines, f"no line {label!r} in:\n{output}"
    return [cell.strip() for cell in lines[0].strip("│").split("│")][1:]


def test_a_full_demo_tells_what_was_stopped_and_who_got_what(tmp_path: Path) -> None:
    """A pool to its last unit, an attack that comes to nothing, codes, a lottery: every rule is ok."""
    done = run_demo(tmp_path, "--full", "--claims", "3000", "--orders", "300", "--rate", "300")

    report = done.stdout
    accounts, claims, stopped, held, coupons = map(int, cells(report, "attackers, in all"))
    honest = list(map(int, cells(report, "honest, in all")))
    assert done.returncode == 0, report + done.stderr
    assert RULES + full_demo.RULES == len(re.findall(r"│\s+ok\s+│", report))
    assert cells(report, "budget") == cells(report, "sum of all coupons")
    assert coupons <= guarded_crowd.DEVICE_LIMIT + guarded_crowd.ADDRESS_LIMIT < accounts < claims
    assert [honest[0], 0] == [honest[4], honest[2]]
    assert stopped == sum(number(report, by) for by in STOPPED_BY if by in report)
    assert held + honest[3] == sum(int(cells(report, crowd)[1]) for crowd in ("office", "address-farm"))
    assert ["coupons won", "0"] == [*re.findall(r"guesses\s+│ (coupons won)\s+│\s+(\d+)", report)[0]]
    assert number(report, "draws") == sum(int(cells(report, prize)[3]) for prize in PRIZES)
    assert not re.search("Traceback|Error", done.stderr)


def test_a_full_demo_under_kills_ends_with_every_rule_holding(tmp_path: Path) -> None:
    """Whatever is killed meanwhile: no coupon more for the farms, none less for anybody else."""
    done = run_demo(
        tmp_path, "--full", "--claims", "1000", "--orders", "200", "--rate", "100", "--kill-every", "2", "--seed", "2"
    )

    report = done.stdout
    assert done.returncode == 0, report + done.stderr
    assert RULES + full_demo.RULES == len(re.findall(r"│\s+ok\s+│", report))
    assert cells(report, "budget") == cells(report, "sum of all coupons")
    assert len(re.findall(r"killed \w+", report)) >= 3


def test_a_bad_option_is_refused() -> None:
    """Fewer claims than a sale needs: a usage error before anything is started."""
    done = run_demo(Path("unused"), "--claims", "10")

    assert done.returncode == 2
    assert "--claims" in done.stderr
    assert not Path("unused").exists()
