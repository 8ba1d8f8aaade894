"""``coupon-workers demo --serve``: a shop to look at, which ends without a trace."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from coupon_workers.client.client import CouponClient
from tests.support.mortal import mortal

COMMAND = [sys.executable, "-m", "coupon_workers.cli.main"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COUPON_")}


@dataclass
class Served:
    """A demo that serves, with what it printed."""

    process: subprocess.Popen[str]
    told: str

    def named(self, what: str) -> str:
        """What was printed behind ``what``."""
        match = re.search(rf"{what}\s*(\S+)", self.told)
        assert match, self.told
        return match[1]

    @property
    def children(self) -> list[psutil.Process]:
        """Every process it has started."""
        return psutil.Process(self.process.pid).children(recursive=True)


def open_demo(temporary: Path, *options: str) -> Served:
    """Start one by nohup whose temporary folder lies in ``temporary``, and wait until it is ready."""
    process = subprocess.Popen(
        ["nohup", *mortal(*COMMAND, "demo", "--serve", *options)],
        env={**ENVIRONMENT, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    told = ""
    for line in process.stdout:
        told += line
        if line.startswith("ready "):
            return Served(process, told)
    raise AssertionError(told + process.communicate()[1])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all that look."""
    served = open_demo(tmp_path_factory.mktemp("served"))
    yield served
    served.process.send_signal(signal.SIGTERM)
    served.process.communicate(timeout=90)


@pytest.fixture(scope="module")
def operator(served: Served) -> Iterator[CouponClient]:
    """Whoever has read the key that was printed."""
    with CouponClient(served.named("ready"), served.named("its key")) as client:
        yield client


def test_there_is_something_of_every_kind_to_look_at(served: Served, operator: CouponClient) -> None:
    """Templates in six states, a lottery with prizes left, codes, findings, a closed day, dead letters, held claims."""
    templates = {template["status"] for template in operator.templates.every()}
    findings = {finding["class"] for finding in operator.back_office.findings(state="open")}
    (batch,) = operator.codes.every()
    (lottery,) = operator.lotteries.every()
    day = operator.back_office.day(served.named("Daily closes").rstrip(","))

    assert {"draft", "pending_approval", "scheduled", "active", "paused", "offline"} == templates
    assert {"paid_differs", "redeemed_without_order", "discount_without_redemption"} == findings
    assert 0 < batch["used"] < batch["quantity"]
    assert lottery["draws"] > 0 and all(prize["left"] > prize["stock"] / 2 for prize in lottery["prizes"])
    assert ("closed", True) == (day["status"], any(True for _ in operator.back_office.ledger(date=day["date"])))
    assert day["date"] in {each["date"] for each in operator.back_office.days()}
    assert ["greet_birthdays"] == [letter["actor"] for letter in operator.operations.dead_letters()]
    assert any(True for _ in operator.risk.reviews(state="held"))


def test_traffic_goes_on(served: Served, operator: CouponClient) -> None:
    """The template of the live view is claimed from while somebody looks, though the terminal be closed by now."""
    served.process.send_signal(signal.SIGHUP)
    template_id = served.named(r"Live view\s+\S+/console/live/")
    before = operator.templates.read(template_id)["stock"]

    while operator.templates.read(template_id)["stock"]["issued"] == before["issued"]:
        assert served.process.poll() is None

    assert operator.templates.read(template_id)["stock"]["issued"] > before["issued"]


def test_every_rule_holds_for_what_was_sown(served: Served) -> None:
    """The command as it is printed, while traffic goes on: nothing has to be on the path."""
    printed = re.search(r"the rules +(.+)", served.told)
    assert printed is not None, served.told

    done = subprocess.run(
        printed[1],
        shell=True,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "all rules hold" == done.stdout.splitlines()[-1]


@pytest.mark.parametrize("keep", [False, True])
def test_ctrl_c_ends_it_and_leaves_nothing_but_what_is_to_be_kept(tmp_path: Path, keep: bool) -> None:
    """No process, no folder; with ``--keep`` the folder, and where it is."""
    served = open_demo(tmp_path, *(["--keep"] if keep else []))
    started = served.children

    served.process.send_signal(signal.SIGINT)
    more, complaints = served.process.communicate(timeout=90)

    left = list(tmp_path.iterdir())
    assert 0 == served.process.returncode, complaints
    assert len(started) >= 6
    assert not [child for child in started if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert keep == any(folder.name.startswith("coupon-demo-") for folder in left)
    assert [f"data and logs are in {folder}" for folder in left if keep] == more.splitlines()
    assert not re.search("Traceback|Error", complaints)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--serve", "--full"], "does not go with --full"),
        (["--serve", "--kill-every", "2", "--claims", "3000"], "does not go with --claims, --kill-every"),
        (["--serve", "--orders", "4000"], "does not go with --orders"),
        (["--port", "8000"], "--port goes with --serve"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: list[str], complaint: str) -> None:
    """Also one that is given its default: nothing is started."""
    done = subprocess.run([*COMMAND, "demo", *options], capture_output=True, text=True, timeout=60, check=False)

    assert 2 == done.returncode
    assert complaint in " ".join(done.stderr.split())
