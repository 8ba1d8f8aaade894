"""The worker's part of a batch, played by the test: what lies in the post is done, and what that sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coupon_workers.campaigns.batch_run import run_step, start_batch
from coupon_workers.campaigns.batch_sweep import sweep_batches
from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import Task


def work(services: Services, sent: list[Task], most: int = 1_000) -> int:
    """Do the tasks of batches in ``sent``, at most so many; how many were done."""
    doings: dict[str, Callable[..., Any]] = {
        "stage_batch": lambda batch_id: (stage_batch(services, batch_id), start_batch(services, batch_id)),
        "issue_shard": lambda *args: run_step(services, *args),
        "sweep_batches": lambda: sweep_batches(services),
    }
    done = 0
    while sent and done < most:
        task = sent.pop(0)
        if task.name in doings:
            doings[task.name](*task.args)
            done += 1
    return done


def sent_by(services: Services) -> list[Task]:
    """What lies in the post of a test."""
    sent: list[Task] = services.post.sent  # type: ignore[attr-defined]  # the post of tests keeps it
    return sent
