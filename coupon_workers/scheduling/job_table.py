"""The table of jobs: name, trigger, task. The name is in the book of runs: a changed name is another job.

It is data, and here rather than in ``schedules/``, so that a front can tell of the jobs too (``docs/decisions``, 0019).
"""

from __future__ import annotations

from datetime import time, timedelta
from functools import partial

from coupon_workers.runtime.task import (
    archive_coupons,
    close_day,
    expire_coupons,
    prune_history,
    reconcile,
    relay_outbox,
    release_overdue_locks,
    score_accounts,
    settle_order_events,
    sweep_batches,
    sweep_codes,
    sweep_gates,
    sweep_lotteries,
    sweep_reconciliations,
    sweep_revocations,
    sweep_risk,
    warn_of_expiry,
)
from coupon_workers.scheduling.job import Job, whenever
from coupon_workers.scheduling.trigger import Daily, Every

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
    # Old coupons leave the tables of the living ones, at 02:30 in Shanghai; a day more or less is nothing to them.
    Job("archive_coupons", Daily(at=time(18, 30)), whenever(archive_coupons), misfire_grace=timedelta(days=1)),
    # Each run has an hour of coupons of its own. One that is late by more than the longest notice would come too late.
    Job("warn_of_expiry", Every(seconds=3600, each=True), warn_of_expiry, misfire_grace=timedelta(days=7)),
    Job("settle_order_events", Every(seconds=30), whenever(settle_order_events)),
    # A batch that is due starts within this; a shard whose message was lost goes on.
    Job("sweep_batches", Every(seconds=5), whenever(sweep_batches)),
    # A generation whose message was lost goes on within this; units of codes that are over are claimable again.
    Job("sweep_codes", Every(seconds=5), whenever(sweep_codes)),
    # A forgotten bell of a lottery is rung within this; what nobody won is claimable again.
    Job("sweep_lotteries", Every(seconds=2), whenever(sweep_lotteries)),
    # A review ends within this of its deadline; refusals are in the log within it.
    Job("sweep_risk", Every(seconds=5), whenever(sweep_risk)),
    # Accounts are scored within this of their coming; without a scorer nothing is asked.
    Job("score_accounts", Every(seconds=10), whenever(score_accounts)),
    # A day is closed within the hour in which it ends in the last of the zones; days missed are closed one by one.
    Job("close_day", Every(seconds=3600, each=True), close_day, misfire_grace=timedelta(days=30)),
    # Of daily jobs that look at everything the newest missed run stands for all: within a day there is one.
    # Counters, queues and batches are looked at often; every coupon once a day, at 03:30 in Shanghai.
    Job("reconcile_stock", Every(seconds=3600), partial(reconcile, "stock")),
    Job("reconcile_batches", Every(seconds=3600), partial(reconcile, "batches")),
    Job("reconcile_state", Daily(at=time(19, 30)), partial(reconcile, "state"), misfire_grace=timedelta(days=1)),
    Job("reconcile_codes", Daily(at=time(19, 45)), partial(reconcile, "codes"), misfire_grace=timedelta(days=1)),
    # Each missed day has a run of its own: it says what was known on it. A statement that comes has its own too.
    Job("reconcile_orders", Daily(at=time(20, 0)), partial(reconcile, "orders"), misfire_grace=timedelta(days=30)),
    Job("sweep_reconciliations", Every(seconds=60), whenever(sweep_reconciliations)),
    # A recall whose message was lost goes on within this; an index of those that run is read.
    Job("sweep_revocations", Every(seconds=15), whenever(sweep_revocations)),
)
