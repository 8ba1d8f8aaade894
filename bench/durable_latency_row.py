"""From 202 to durable at half of the peak rate, by the stores' clocks and as a client sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median

from bench.claim_view_row import load_front_and_worker
from bench.front import OURS, Front, serving
from bench.paced_claims import PacedClaims
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import open_sale
from bench.stage import Stage
from bench.worker import working

HALF_PEAK = "half of the peak"

LIMIT_MS = 1_000.0
PEAK_SHARE = 0.5


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    with serving(stage, OURS) as front:
        peak = median(load_front_and_worker(front)["claims_per_s"] for _ in range(stage.scale.peak_runs))
        yield {HALF_PEAK: partial(_run, front, peak * PEAK_SHARE)}


def _run(front: Front, rate: float) -> Numbers:
    stage = front.stage
    with working(stage) as worker:
        sale = open_sale(stage.world)
        stage.world.quiet()
        clients = PacedClaims(front, sale.template_id)
        clients.run(rate, stage.scale.latency_s)
        sale.wait_issued(clients.accepted, partial(stage.check_runs, worker))
        sale.wait_acknowledged()
        stored = {f"stored_p{percent}_ms": _stored_ms(front, percent) for percent in (50, 99)}
    return {"offered_per_s": rate, **clients.numbers(), **stored}


def _stored_ms(front: Front, percent: int) -> float:
    """From the gate's acceptance (Redis's clock) to the start of the transaction that issued (PostgreSQL's clock)."""
    return front.stage.world.number(
        "SELECT extract(epoch FROM percentile_disc(:part) WITHIN GROUP (ORDER BY issued_at - claimed_at)) * 1000"
        "  FROM coupon",
        part=percent / 100,
    )


ROW = Row(
    "durable-latency",
    "Open loop at half of the rate that front and worker carried together just before. `told`: the client's view, from "
    "its 202 to `issued`, one claim of twenty, the wait's steps included. `stored`: from the gate's acceptance to the "
    "start of the transaction that issued, every claim.",
    (
        Comparison(
            "p99 from 202 to issued, the client's view",
            "the clock",
            "told_p99_ms",
            HALF_PEAK,
            constant=LIMIT_MS,
            owed=1.0,
            sense="at most",
        ),
        Comparison(
            "p99 from 202 to issued, the stores' clocks",
            "the clock",
            "stored_p99_ms",
            HALF_PEAK,
            constant=LIMIT_MS,
            owed=1.0,
            sense="at most",
        ),
    ),
    _open,
)
