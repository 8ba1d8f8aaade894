"""A worker of campaigns that dies: in the test's process by an exception, or as a process of its own by SIGKILL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coupon_workers.campaigns import shard_step
from coupon_workers.campaigns.batch_run import run_step
from coupon_workers.campaigns.gate_count import count_step
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.settings import Settings, read_settings
from tests.support.crash import Crash, crash_at

POINTS = ("campaign.before_commit", "campaign.after_commit", "campaign.amid_count", "campaign.after_count")
ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


@contextmanager
def dying_at(monkeypatch: pytest.MonkeyPatch, point: str | None) -> Iterator[None]:
    """Whoever passes ``point`` (see ``runtime/crash_point.py``) dies there; the block goes on after it."""
    with crash_at(monkeypatch, point), suppress(Crash):
        yield


@contextmanager
def stopped_before_counting(monkeypatch: pytest.MonkeyPatch, stopped: list[Callable[[], None]]) -> Iterator[None]:
    """Whoever has committed a step stands still there; ``stopped`` gets what lets him go on, however late."""

    def stand_still(*arguments: Any) -> None:
        stopped.append(partial(count_step, *arguments))
        raise Crash("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(shard_step, "count_step", stand_still)
        with suppress(Crash):
            yield


def step_in_child(settings: Settings, batch_id: int, shard: int, cursor: int, chunk: int, crash_at: str) -> int:
    """One message taken by a process of its own, which dies at ``crash_at``; its return code."""
    urls = {name: getattr(settings, name).get_secret_value() for name in ("database_url", "redis_url", "broker_url")}
    environment = os.environ | {f"COUPON_{name.upper()}": url for name, url in urls.items()}
    numbers = map(str, (batch_id, shard, cursor, chunk))
    return subprocess.run(
        [sys.executable, "-m", "tests.support.campaign_crash", *numbers],
        cwd=ROOT,
        env=environment | {"COUPON_CRASH_AT": crash_at},
        timeout=PATIENCE_S,
        check=False,
    ).returncode


if __name__ == "__main__":
    _batch_id, _shard, _cursor, _chunk = map(int, sys.argv[1:])
    run_step(make_services(read_settings()), _batch_id, _shard, _cursor, chunk=_chunk)
