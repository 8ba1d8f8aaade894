"""What a claim costs with millions of coupons outstanding, against ten thousand."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import md5

from bench.cpu_meter import CpuMeter
from bench.failure import BenchFailure
from bench.outstanding_coupons import fill_outstanding
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import Sale, open_sale
from bench.side_world import side_world
from bench.stage import Stage
from bench.world import World
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain

FEW = "few outstanding"
MANY = "many outstanding"

BYTES_A_COUPON = 1_000
"""Of disk for each coupon: rows, indexes and the append-only file (measured: see docs/benchmarks.md)."""

SPARE_BYTES = 4 * 1024**3
"""For the write-ahead log and the rewriting of files."""

COUPONS_A_CLAIM = 25
"""Outstanding coupons for each claim of the wearing in: an index page holds about a hundred, so each is met some four
times."""

WEAR_IN_CHUNK = 20_000
_NEVER_S = 3_600.0
_LOG_POSITION = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    scale = stage.scale
    needed = scale.many_outstanding * BYTES_A_COUPON + SPARE_BYTES
    free = shutil.disk_usage(stage.folder).free
    if free < needed:
        raise BenchFailure(f"{needed / 1e9:.0f} GB of disk are needed, {free / 1e9:.0f} GB are free")
    with ExitStack() as stack:
        few = stack.enter_context(side_world(stage, "few_outstanding", 1))
        many = stack.enter_context(side_world(stage, "many_outstanding", 2))
        sale = _with_outstanding(many, scale.many_outstanding)
        _wear_in(stage, sale)
        yield {
            FEW: lambda: _claim(stage, _with_outstanding(few, scale.few_outstanding)),
            MANY: partial(_claim, stage, sale),
        }


def _with_outstanding(world: World, count: int) -> Sale:
    """A sale that has issued ``count`` coupons, each of another user, and goes on; nothing else is there."""
    world.clear()
    sale = open_sale(world)
    fill_outstanding(world, sale.template_id, count)
    preheat_template(world.services, sale.template_id)
    return sale


def _wear_in(stage: Stage, sale: Sale) -> None:
    """Sell until most pages of the indexes have been written since the checkpoint.

    The first write to a page after a checkpoint puts the whole page into the write-ahead log. In a sale that is a
    matter of its first seconds after each checkpoint; a measured round is short, and would be all first writes.
    """
    sale.world.quiet()
    claims = stage.scale.many_outstanding // COUPONS_A_CLAIM
    for first in range(0, claims, WEAR_IN_CHUNK):
        sale.fill(ClaimFront(sale.world.services), _new_users(stage, min(WEAR_IN_CHUNK, claims - first)))
        drain(sale.world.services, sale.template_id, 0, turn_s=_NEVER_S)


def _new_users(stage: Stage, count: int) -> list[str]:
    """Spread over the indexes as users are, not side by side at their end."""
    mark = stage.mark()
    return [f"u-{md5(f'{mark}-{number}'.encode()).hexdigest()[:16]}" for number in range(count)]


def _claim(stage: Stage, sale: Sale) -> Numbers:
    """Claims of new users through the gate, then their settling, in this process."""
    count = stage.scale.outstanding_claims
    world = sale.world
    world.execute("TRUNCATE outbox")
    world.wait_for_rewrite()
    issued, log_from = sale.issued, world.number(_LOG_POSITION)
    users = _new_users(stage, count)
    front = ClaimFront(world.services)
    redis = CpuMeter({"redis": stage.servers.pids()["redis"]})
    began_s = time.perf_counter()
    sale.fill(front, users)
    filled_s = time.perf_counter()
    costs = redis.us_each(count)
    postgres = CpuMeter({"postgres": stage.servers.pids()["postgres"]})
    drain(world.services, sale.template_id, 0, turn_s=_NEVER_S)
    drained_s = time.perf_counter()
    if sale.issued != issued + count:
        raise BenchFailure(f"{sale.issued - issued} of {count} claims were settled")
    return {
        "gate_us": (filled_s - began_s) * 1e6 / count,
        "drain_us": (drained_s - filled_s) * 1e6 / count,
        "claim_us": (drained_s - began_s) * 1e6 / count,
        **costs,
        **postgres.us_each(count),
        "log_bytes": (world.number(_LOG_POSITION) - log_from) / count,
    }


def _comparison(work: str, number: str) -> Comparison:
    return Comparison(work, "the same with few coupons outstanding", number, MANY, FEW, owed=1.2, sense="at most")


ROW = Row(
    "outstanding",
    "One template that has issued so many coupons, each of another user, all of them in its gate too, and goes on "
    "selling to new ones. Two databases on the same servers, in turn. `gate`: 500 claims a round trip; `drain`: in "
    "process; both in microseconds of the clock for a claim.",
    (
        _comparison("a claim, gate and drain (µs)", "claim_us"),
        _comparison("a claim at the gate (µs)", "gate_us"),
        _comparison("a claim's drain (µs)", "drain_us"),
    ),
    _open,
)
