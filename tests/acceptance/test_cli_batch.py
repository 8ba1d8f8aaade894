"""``coupon-workers batch`` against the run's servers; a thread plays the worker, with the broker's messages lost."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from coupon_workers.campaigns import batch_control as control
from coupon_workers.campaigns.batch_reading import read_one, read_page
from coupon_workers.campaigns.batch_run import run_step, start_batch
from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.cli.batch_progress import wait_for_end
from coupon_workers.cli.batch_table import summary
from coupon_workers.cli.main import main
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.task import Task
from tests.support.batch_worker import work
from tests.support.http_desk import from_now
from tests.support.template import insert_template

Run = Callable[..., Result]

ENDED = re.compile(r"batch (\d+) \(.*\) is (\w+)")


@pytest.fixture
def env(settings: Settings) -> dict[str, str]:
    """The environment of the run's servers."""
    return {
        name: getattr(settings, field).get_secret_value()
        for name, field in ((DATABASE_URL, "database_url"), (REDIS_URL, "redis_url"), (BROKER_URL, "broker_url"))
    } | {"COLUMNS": "200"}


@pytest.fixture
def run(env: dict[str, str], services: Services) -> Run:
    """Run ``coupon-workers batch`` with these words on empty stores."""

    def invoke(*words: str, given: bytes | None = None) -> Result:
        return CliRunner().invoke(main, ("batch", *words), env=env, input=given)

    return invoke


@pytest.fixture
def worker(services: Services) -> Iterator[None]:
    """Somebody who does the workers' part of every batch that he finds."""
    ended = threading.Event()

    def turn() -> None:
        sent: list[Task] = services.post.sent  # type: ignore[attr-defined]  # it is the test's post box
        for batch in read_page(services, limit=10):
            stage_batch(services, int(batch.batch_no))
            start_batch(services, int(batch.batch_no))
        work(services, sent)

    def play() -> None:
        while not ended.wait(0.05):
            turn()

    thread = threading.Thread(target=play)
    thread.start()
    yield
    ended.set()
    thread.join()


def _file(folder: Path, *lines: str, name: str = "regulars.csv") -> str:
    path = folder / name
    path.write_text("\n".join(("user_id", *lines, "")))
    return str(path)


def _counts(table: str) -> dict[str, int]:
    rows = re.findall(r"^ *(issued|duplicate|refused|invalid|not issued|rows) +([\d,]+) *$", table, re.MULTILINE)
    return {name: int(count.replace(",", "")) for name, count in rows}


@pytest.mark.usefixtures("worker")
def test_a_batch_is_waited_for_and_its_table_adds_up(run: Run, services: Services, tmp_path: Path) -> None:
    """Rows = issued + duplicate + refused + invalid; the number comes first."""
    template_id = insert_template(services.engine)

    result = run("create", _file(tmp_path, "u1", "u2", "u1", "a b"), "--template", str(template_id), "--wait")

    assert 0 == result.exit_code, result.output
    number, *table = result.stdout.splitlines()
    assert (number, "done") == ENDED.findall(table[0])[0]
    counts = _counts(result.stdout)
    assert {"issued": 2, "duplicate": 1, "refused": 0, "invalid": 1, "rows": 4} == counts
    assert "regulars" == read_one(services, int(number)).name


@pytest.mark.usefixtures("worker")
def test_a_batch_that_fails_is_exit_1(run: Run, services: Services, tmp_path: Path) -> None:
    """With the reason, and rows that still add up."""
    template_id = insert_template(services.engine, total_quantity=1)

    result = run("create", _file(tmp_path, "u1", "u2"), "--template", str(template_id), "--wait")
    shown = run("show", result.stdout.split()[0], "--wait")

    assert [1, 1] == [result.exit_code, shown.exit_code]
    assert "is failed: NOT_ENOUGH_STOCK" in result.stdout
    counts = _counts(result.stdout)
    assert counts.pop("rows") == sum(counts.values()) == 2


@pytest.mark.usefixtures("worker")
def test_best_effort_is_exit_0(run: Run, services: Services, tmp_path: Path) -> None:
    """Some were refused, as it was meant."""
    template_id = insert_template(services.engine, total_quantity=1)
    words = ("--template", str(template_id), "--policy", "best_effort", "--wait")

    result = run("create", _file(tmp_path, "u1", "u2"), *words)
    failures = run("failures", result.stdout.split()[0])

    assert 0 == result.exit_code, result.output
    assert {"issued": 1, "refused": 1, "rows": 2} == {
        name: count for name, count in _counts(result.stdout).items() if count
    }
    assert ["row,value,reason", "3,u2,"] == [line[:16].rstrip("\r") for line in _csv_heads(failures.stdout)]


def _csv_heads(text: str) -> list[str]:
    header, *rows = text.splitlines()
    return [header, *(",".join(row.split(",")[:2]) + "," for row in rows)]


def test_a_batch_comes_through_a_pipe_or_of_tags(run: Run, services: Services, tmp_path: Path) -> None:
    """Tags are imported from a file; rows that are none are named."""
    template_id = insert_template(services.engine)
    (tmp_path / "tags.csv").write_text("user_id,tag\nu1,vip\nu2,vip\nu2,churned\n,vip\n")

    imported = run("tags", str(tmp_path / "tags.csv"))
    of_tags = run("create", "--template", str(template_id), "--tags", "vip and not churned")
    piped = run("create", "-", "--template", str(template_id), "--name", "piped", given=b"user_id\nu1\n")

    assert "4 rows: 3 tags added, 1 rows left out\n" == imported.stdout
    assert "row 5 left out: ''" in imported.stderr
    for result, name in ((of_tags, "vip and not churned"), (piped, "piped")):
        assert 0 == result.exit_code, result.output
        batch = read_one(services, int(result.stdout))
        assert (name, "staging") == (batch.name, batch.status)
        assert f"batch show {batch.batch_no} --wait" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "name a FILE, or give --tags"),
        (("FILE", "--tags", "vip"), 2, "name a FILE, or give --tags"),
        (("FILE", "--name", ""), 2, "--name"),
        (("FILE", "--start-at", "2030-01-01T00:00:00"), 2, "offset"),
        (("FILE", "--start-at", "2999-01-01T00:00:00Z"), 1, "start_at must lie before the template's end"),
        (("FILE", "--policy", "some"), 2, "--policy"),
        (("FILE", "--template", "x"), 2, "no such number"),
        (("FILE", "--template", "1"), 1, "there is no template 1"),
        (("missing.csv",), 2, "does not exist"),
        (("EMPTY",), 1, "file is empty"),
        (("--tags", "vip and"), 1, "at character 8"),
    ],
)
def test_what_cannot_be_meant_makes_nothing(
    run: Run, services: Services, tmp_path: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    """Exit 2 for a wrong command, 1 for what is refused, in one line that says why."""
    template_id = insert_template(services.engine)
    (tmp_path / "empty.csv").touch()
    files = {"FILE": _file(tmp_path, "u1"), "EMPTY": str(tmp_path / "empty.csv")}

    result = run("create", "--template", str(template_id), *(files.get(word, word) for word in words))

    assert (code, True) == (result.exit_code, told in result.stderr), result.output
    assert [] == read_page(services, limit=1)


def test_a_batch_is_listed_shown_and_moved(run: Run, services: Services, tmp_path: Path) -> None:
    """Each word says how the batch stands then; what cannot be is an error of one line."""
    template_id = insert_template(services.engine)
    number = run(
        "create", _file(tmp_path, "u1"), "--template", str(template_id), "--start-at", from_now(hours=1)
    ).stdout.strip()
    stage_batch(services, int(number))

    moved = [run(word, number).stdout for word in ("pause", "resume", "cancel")]
    too_late = run("resume", number)

    assert [f"batch {number} is {status}\n" for status in ("paused", "ready", "cancelled")] == moved
    assert (1, 1) == (too_late.exit_code, len(too_late.stderr.splitlines()))
    assert number in run("list", "--status", "cancelled").stdout
    assert number not in run("list", "--status", "done").stdout
    assert [number] == [batch["batch_no"] for batch in json.loads(run("list", "--json").stdout)]
    assert "cancelled" == json.loads(run("show", number, "--json").stdout)["status"]
    assert {"not issued": 1, "rows": 1} == {name: n for name, n in _counts(run("show", number).stdout).items() if n}
    assert 1 == run("show", "1").exit_code


def test_a_bar_shows_staging_then_issuing(services: Services, tmp_path: Path, run: Run) -> None:
    """On a terminal, with the rate; a batch that stands still says why."""
    template_id = insert_template(services.engine)
    number = int(run("create", _file(tmp_path, "u1", "u2"), "--template", str(template_id)).stdout)
    stage_batch(services, number)
    control.pause_batch(services, number, "somebody")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=150)
    threading.Timer(1.0, _finish, (services, number)).start()

    ended = wait_for_end(services, number, console)
    summary(console, ended)

    shown = screen.getvalue()
    assert "done" == ended.status
    assert "paused: paused by somebody; go on with: coupon-workers batch resume" in shown
    assert "staged" in shown and "issuing" in shown and "2/2" in shown and "rows/s" in shown


def _finish(services: Services, number: int) -> None:
    control.resume_batch(services, number, "somebody")
    start_batch(services, number)
    sent: list[Task] = services.post.sent  # type: ignore[attr-defined]
    for task in [task for task in sent if task.name == "issue_shard"]:
        run_step(services, *task.args)  # type: ignore[arg-type]


def test_ctrl_c_leaves_the_batch_running(env: dict[str, str], services: Services, tmp_path: Path) -> None:
    """It says how to look again, and nothing has happened to the batch."""
    template_id = insert_template(services.engine)
    words = ("batch", "create", _file(tmp_path, "u1"), "--template", str(template_id), "--wait")
    process = subprocess.Popen(
        [sys.executable, "-m", "coupon_workers.cli.main", *words],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    number = process.stdout.readline().strip()

    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)

    assert 130 == process.returncode
    assert f"batch {number} goes on by itself; look again with: coupon-workers batch show {number} --wait" in told
    assert "staging" == read_one(services, int(number)).status
