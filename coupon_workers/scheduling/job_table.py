"""The table of jobs: name, trigger, task. The name is in the book of runs: a changed name is another job.

It is data, and here rather than in ``schedules/``, so that a front can tell of the jobs too (``docs/decisions``, 0019).
"""

from __future__ import annotations

from datetime import timedelta

from coupon_workers.runtime.task import (
    close_day,
    expire_coupons,
    prune_history,
    relay_outbox,
    release_overdue_locks,
    settle_order_events,
    sweep_batches,
    sweep_gates,
    warn_of_expiry,
)
from coupon_workers.scheduling.job import Job, whenever
from coupon_workers.scheduling.trigger import Every

TABLE = (
    # A forgotten bell is rung within this and the bell's own life; the sweep reads one set of Redis.
    Job("sweep_gates", Every(seconds=2), whenever(sweep_gates)),
    # What happened is told within about this; nothing to tell costs two questions of PostgreSQL.
    Job("relay_outbox", Every(seconds=1), whenever(relay_outbox)),
    Job("prune_history", Every(seconds=3600), whenever(prune_history)),
    # A coupon is free again within this of its deadline; the sweep reads an index of live locks only.
    Job("release_overdue_locks", Every(seconds=2), whenever(release_overdue_locks)),
    # An unused coupon past its validity reads expired at once; this is for its row, its history and its event.
    Job("expire_coupons", Every(seconds=60), whenever(expire_coupons)),
    # Each run has an hour of coupons of its own. One that is late by more than the longest notice would come too late.
    Job("warn_of_expiry", Every(seconds=3600, each=True), warn_of_expiry, misfire_grace=timedelta(days=7)),
    Job("settle_order_events", Every(seconds=30), whenever(settle_order_events)),
    # A batch that is due starts within this; a shard whose message was lost goes on.
    Job("sweep_batches", Every(seconds=5), whenever(sweep_batches)),
    # A day is closed within the hour in which it ends in the last of the zones; days missed are closed one by one.
    Job("close_day", Every(seconds=3600, each=True), close_day, misfire_grace=timedelta(days=30)),
)
