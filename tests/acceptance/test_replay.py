"""``coupon-workers replay``, ``check`` and ``preheat`` against a running installation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from coupon_workers.embedded.output import LogFolder
from coupon_workers.embedded.running_system import RunningSystem
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL

GENERATOR = Path(__file__).parents[2] / "bench" / "receipts.py"
ROWS = 2_000
BAD = """\
7,1,null,null,0,null
x y,1,901,20:1,0,20160701
7,1,901,20:1,0,20160799
7,1,901,oops,0,20160701

7,1,901,20:1,0
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystem]:
    """A whole installation on this machine."""
    folder = tmp_path_factory.mktemp("replay")
    own_servers = {DATABASE_URL: "", REDIS_URL: "", BROKER_URL: ""}
    output = LogFolder(folder / "logs")
    with RunningSystem(folder / "data", overrides=own_servers, output=output, durable=False) as started:
        yield started


@pytest.fixture
def run(system: RunningSystem) -> Run:
    """Runs a command that finds the installation by its data folder alone."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COUPON_")}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "coupon_workers.cli.main", *arguments],
            env={**environment, "COUPON_DATA_DIR": str(system.servers.data_dir), "COLUMNS": "160"},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    return command


@pytest.fixture(scope="module")
def receipts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated receipts, with rows among them that are none."""
    path = tmp_path_factory.mktemp("receipts") / "receipts.csv"
    subprocess.run([sys.executable, str(GENERATOR), str(path), "--rows", str(ROWS)], check=True, capture_output=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(BAD)
    return path


def counts(output: str) -> dict[str, int]:
    """The counts of a report by their labels."""
    found = re.findall(r"│\s+([^\s│][^│]*?)\s+│\s+([\d,]+)\s+│", output)
    return {label: int(count.replace(",", "")) for label, count in found}


def test_receipts_are_replayed_once_and_once_only(run: Run, receipts: Path) -> None:
    """Issued is what the receipts come to; bad rows are counted; a second run replays and issues nothing."""
    first = run("replay", str(receipts), "--stock", "40", "--limit", "1", "--concurrency", "8")
    again = run("replay", str(receipts), "--stock", "40", "--limit", "1", "--concurrency", "8")

    told, repeated = counts(first.stdout), counts(again.stdout)
    assert (0, 0) == (first.returncode, again.returncode), first.stdout + first.stderr + again.stderr
    assert ROWS == told["receipts"] == told["sent"] == repeated["sent"]
    assert told["accepted (202)"] == told["issued"] == repeated["issued"] == repeated["replayed (200)"] > 0
    assert 0 == repeated["accepted (202)"] == told["queued"]
    assert "all rules hold" == first.stdout.splitlines()[-1]
    assert re.search(r"bad: User_id [^│]*│\s+1 │ 2003", first.stdout)
    assert re.search(r"skipped: Coupon_id is null\s+│\s+1 │ 2002", first.stdout)


def test_a_coupon_is_shown_as_the_file_calls_it(run: Run, tmp_path: Path) -> None:
    """Its name is no markup."""
    path = tmp_path / "file.csv"
    path.write_text("User_id,Coupon_id,Discount_rate,Date_received\n7,[/901],20:1,20160701\n", encoding="utf-8")

    done = run("replay", str(path))

    assert done.returncode == 0, done.stderr
    assert "[/901]" in done.stdout


def test_a_limit_and_a_rate_are_kept(run: Run, receipts: Path) -> None:
    """Other options make other templates; with a limit of two, users who came twice get two."""
    done = run("replay", str(receipts), "--stock", "1000", "--limit", "2", "--rate", "1500")

    told = counts(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 0 < told["claims/s"] <= 1_600
    assert told["issued"] > ROWS * 0.9


def test_a_breach_ends_check_with_one(run: Run, system: RunningSystem, receipts: Path) -> None:
    """A sound system: exit 0. A book that does not add up: exit 1, and the template is named. Mended: 0 again."""
    assert run("replay", str(receipts), "--stock", "3").returncode == 0
    engine = create_engine(make_url(system.env[DATABASE_URL]).set(drivername="postgresql+psycopg2"))
    with engine.begin() as connection:
        template_id = connection.scalar(text("SELECT min(template_id) FROM coupon_template WHERE total_quantity = 3"))

        def book(change: int) -> None:
            with engine.begin() as other:
                other.execute(
                    text(
                        "UPDATE coupon_template SET rejected_quantity = rejected_quantity + :n WHERE template_id = :id"
                    ),
                    {"n": change, "id": template_id},
                )

    sound = run("check")
    book(1)
    broken = run("check", "--patience", "0")
    broken_as_json = run("check", "--patience", "0", "--json")
    book(-1)
    mended = run("check")
    engine.dispose()

    assert (0, 1, 0) == (sound.returncode, broken.returncode, mended.returncode), broken.stdout
    assert f"template {template_id}: expected rejected_quantity 0, found 1" in broken.stdout
    assert ["all rules hold", "1 rule broken: rejected_count"] == [
        done.stdout.splitlines()[-1] for done in (sound, broken)
    ]
    told = json.loads(broken_as_json.stdout)
    assert (1, False) == (broken_as_json.returncode, told["holds"])
    assert ["rejected_count"] == [rule["name"] for rule in told["rules"] if rule["breaches"]]
    assert {"queued", "outbox", "set_aside"} < set(told["facts"])


def test_preheating_all_templates_changes_nothing(run: Run, receipts: Path) -> None:
    """Every gate is rebuilt from the database, and every rule holds after it; a template that is none is named."""
    assert run("replay", str(receipts), "--stock", "3").returncode == 0

    done = run("preheat", "--all")
    unknown = run("preheat", "4711")

    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ templates warm, [\d,]+ coupons? loaded", done.stdout)
    assert run("check").returncode == 0
    assert unknown.returncode == 1
    assert ["there is no template 4711"] == unknown.stderr.splitlines()
    assert "'x' is no template id" in run("preheat", "x").stderr
    assert run("preheat").returncode == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("User_id,Coupon_id\n1,2\n", "the file has no column Discount_rate, Date_received\n"),
        (None, "does not exist"),
        ("", "has no column User_id"),
    ],
)
def test_a_file_that_holds_no_receipts_is_refused(run: Run, tmp_path: Path, content: str | None, message: str) -> None:
    """The reason is told in one line, and nothing is sent."""
    path = tmp_path / "file.csv"
    if content is not None:
        path.write_text(content, encoding="utf-8")

    done = run("replay", str(path))

    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
