"""The sweep of expired coupons: against one bare UPDATE of the same rows, and what claims feel of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from bench.cpu_meter import CpuMeter
from bench.failure import BenchFailure
from bench.front import OURS, Front, serving
from bench.outstanding_coupons import fill_outstanding
from bench.paced_claims import PacedClaims
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import open_sale
from bench.stage import Stage
from bench.worker import working
from bench.world import World
from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.task import expire_coupons as expire_coupons_task

SWEEP = "sweep"
BARE = "bare UPDATE"
ALONE = "claims alone"
BESIDE = "claims beside a sweep"

_NEVER_S = 3_600.0
_LOOK_EVERY_S = 0.05
_PATIENCE_S = 120.0

_RUN_OUT = "UPDATE coupon SET valid_from = now() - interval '8 days', valid_to = now() - interval '1 minute'"
_BARE = """
UPDATE coupon SET status = 'expired', version = version + 1, updated_at = now()
 WHERE status = 'unused' AND valid_to <= now()
"""
_EXPIRED = "SELECT count(*) FROM coupon WHERE status = 'expired'"
_EXPIRED_SOME = "SELECT 1 FROM coupon WHERE status = 'expired' LIMIT 1"


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    with serving(stage, OURS) as front:
        yield {
            SWEEP: partial(_sweep, stage),
            BARE: partial(_bare, stage),
            ALONE: partial(_claims, front, sweep=False),
            BESIDE: partial(_claims, front, sweep=True),
        }


def _with_run_out(world: World, count: int) -> None:
    """Coupons that have run out, and that nobody has ended: nothing else is there."""
    world.clear()
    fill_outstanding(world, open_sale(world).template_id, count)
    world.execute(_RUN_OUT)
    world.execute("VACUUM (ANALYZE) coupon")
    world.quiet()


def _sweep(stage: Stage) -> Numbers:
    count, world = stage.scale.expired_coupons, stage.world
    _with_run_out(world, count)
    meter, cpu_s = CpuMeter({"postgres": stage.servers.pids()["postgres"]}), time.process_time()
    began_s = time.perf_counter()
    expire_coupons(world.services, utc_now(), turn_s=_NEVER_S)
    elapsed_s = time.perf_counter() - began_s
    costs = meter.us_each(count) | {"python_us": (time.process_time() - cpu_s) * 1e6 / count}
    _check_expired(world, count)
    return {"coupons_per_s": count / elapsed_s, **costs}


def _bare(stage: Stage) -> Numbers:
    count, world = stage.scale.expired_coupons, stage.world
    _with_run_out(world, count)
    meter = CpuMeter({"postgres": stage.servers.pids()["postgres"]})
    with closing(world.connect()) as connection, connection, connection.cursor() as cursor:
        began_s = time.perf_counter()
        cursor.execute(_BARE)
        connection.commit()
        elapsed_s = time.perf_counter() - began_s
    costs = meter.us_each(count)
    _check_expired(world, count)
    return {"coupons_per_s": count / elapsed_s, **costs}


def _claims(front: Front, *, sweep: bool) -> Numbers:
    """Claims of a template at a steady rate, while coupons of another one are ended by the worker, or none are."""
    stage = front.stage
    world = stage.world
    with working(stage) as worker:
        if sweep:
            _with_run_out(world, stage.scale.expired_beside)
        sale = open_sale(world)
        world.quiet()
        if sweep:
            world.services.post.send(expire_coupons_task())
            _wait_begun(world)
        clients = PacedClaims(front, sale.template_id)
        clients.run(stage.scale.beside_rate, stage.scale.latency_s)
        left = stage.scale.expired_beside - world.number(_EXPIRED) if sweep else 0
        sale.wait_issued(clients.accepted, partial(stage.check_runs, worker))
        sale.wait_acknowledged()
    return clients.numbers() | {"left_to_end": left}


def _wait_begun(world: World) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    with closing(world.connect()) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        while time.monotonic() < deadline_s:
            cursor.execute(_EXPIRED_SOME)
            if cursor.fetchone() is not None:
                return
            time.sleep(_LOOK_EVERY_S)
    raise BenchFailure("the sweep does not begin")


def _check_expired(world: World, count: int) -> None:
    expired = int(world.number(_EXPIRED))
    if expired != count:
        raise BenchFailure(f"{expired} of {count} coupons were ended")


ROW = Row(
    "expiry",
    "Coupons that have run out are ended. `sweep`: in this process, one chunk after the other, each coupon with its "
    "history and an event. `bare UPDATE`: one statement, one transaction, the coupons alone. `claims`: open loop at a "
    "steady rate on another template, beside the worker's sweep or without one; `left to end`: coupons that were still "
    "to be ended when the claims were over.",
    (
        Comparison(
            "expiry sweep, coupons a second", "one bare UPDATE of the same rows", "coupons_per_s", SWEEP, BARE, owed=0.5
        ),
        Comparison(
            "p99 of a claim's answer beside a sweep",
            "without one",
            "answer_p99_ms",
            BESIDE,
            ALONE,
            owed=2.0,
            sense="at most",
        ),
    ),
    _open,
)
