"""Reconciling stock and state of millions of coupons, against counting the same tables."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sqlalchemy import text

from bench.cpu_meter import CpuMeter
from bench.failure import BenchFailure
from bench.memory_watch import MemoryWatch
from bench.reconciled_coupons import TEMPLATES, fill_sound
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import open_sale
from bench.side_world import side_world
from bench.stage import Stage
from bench.world import World
from coupon_workers.checking.reading import snapshot
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.reconciliation.state_differences import state_differences
from coupon_workers.reconciliation.stock_differences import stock_differences
from coupon_workers.runtime.clock import utc_now

OURS = "reconciliation"
BARE = "bare aggregates"

BYTES_A_COUPON = 1_500
SPARE_BYTES = 4 * 1024**3

# Each table that we read, read once, by whoever wants to know how many there are.
_AGGREGATES = (
    "SELECT template_id, status, count(*) FROM coupon GROUP BY template_id, status",
    "SELECT action, count(*) FROM coupon_flow GROUP BY action",
    "SELECT state, count(*), sum(discount_minor) FROM coupon_use GROUP BY state",
    "SELECT status, count(*), sum(discount_minor) FROM coupon_order GROUP BY status",
    "SELECT kind, count(*), sum(amount_minor) FROM ledger_entry GROUP BY kind",
)


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    count = stage.scale.reconciled_coupons
    needed = count * BYTES_A_COUPON + SPARE_BYTES
    if (free := shutil.disk_usage(stage.folder).free) < needed:
        raise BenchFailure(f"{needed / 1e9:.0f} GB of disk are needed, {free / 1e9:.0f} GB are free")
    with side_world(stage, "reconciled", 1) as world:
        world.clear()
        sale = open_sale(world)
        fill_sound(world, sale.template_id, count)
        preheat_template(world.services, sale.template_id)
        world.quiet()
        yield {OURS: partial(_reconcile, stage, world, count), BARE: partial(_aggregate, stage, world, count)}


def _reconcile(stage: Stage, world: World, count: int) -> Numbers:
    pids = stage.servers.pids()
    meter = CpuMeter({"postgres": pids["postgres"], "redis": pids["redis"]})
    cpu_s = time.process_time()
    with MemoryWatch(pids["postgres"]) as memory:
        began_s = time.perf_counter()
        stock = stock_differences(world.services, utc_now(), None)
        stock_s = time.perf_counter() - began_s
        state = state_differences(world.services, utc_now(), None)
        elapsed_s = time.perf_counter() - began_s
    if stock.differences or state.differences or (stock.examined, state.examined) != (TEMPLATES, count):
        raise BenchFailure(f"{stock.examined} templates and {state.examined} coupons: {stock} {state}"[:500])
    costs = meter.us_each(count) | {"python_us": (time.process_time() - cpu_s) * 1e6 / count}
    return {"elapsed_s": elapsed_s, "stock_s": stock_s, **costs, **memory.numbers()}


def _aggregate(stage: Stage, world: World, count: int) -> Numbers:
    meter = CpuMeter({"postgres": stage.servers.pids()["postgres"]})
    began_s = time.perf_counter()
    with snapshot(world.services) as connection:
        rows = [connection.execute(text(statement)).all() for statement in _AGGREGATES]
    elapsed_s = time.perf_counter() - began_s
    if sum(row[2] for row in rows[0]) != count:
        raise BenchFailure("not every coupon was counted")
    return {"elapsed_s": elapsed_s, **meter.us_each(count)}


ROW = Row(
    "reconciliation",
    "Coupons of twenty templates, one of them warm; a tenth redeemed by orders, with uses and bookings, a twentieth "
    "expired. The stock and the state reader, one after the other, in this process; the bare aggregates count the "
    "same tables, each once, in one snapshot with the same settings. `grown`: this process; `backend`: the largest of "
    "PostgreSQL's, without shared buffers.",
    (
        Comparison(
            "stock and state, s",
            "bare aggregates of the same tables",
            "elapsed_s",
            OURS,
            BARE,
            owed=3.0,
            sense="at most",
        ),
        Comparison(
            "memory by which the reader grows (MiB)",
            "200 MiB",
            "grown_mib",
            OURS,
            constant=200.0,
            owed=1.0,
            sense="at most",
        ),
        Comparison(
            "memory of a PostgreSQL process (MiB)",
            "200 MiB",
            "backend_mib",
            OURS,
            constant=200.0,
            owed=1.0,
            sense="at most",
        ),
    ),
    _open,
)
