"""The table of jobs: name, trigger, task. The name is in the book of runs: a changed name is another job."""

from __future__ import annotations

from coupon_workers.runtime.task import prune_history, sweep_gates
from coupon_workers.scheduling.job import Job, whenever
from coupon_workers.scheduling.trigger import Every

TABLE = (
    # A forgotten bell is rung within this and the bell's own life; the sweep reads one set of Redis.
    Job("sweep_gates", Every(seconds=2), whenever(sweep_gates)),
    Job("prune_history", Every(seconds=3600), whenever(prune_history)),
)
