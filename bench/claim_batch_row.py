"""``POST /v1/claims/batch`` against the single view, in claims a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from bench.failure import BenchFailure
from bench.front import OURS, Front, serving
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import open_sale
from bench.stage import Stage

CLAIMS_EACH = 500
"""The most that API.md allows."""

SINGLE = "single"
BATCH = "batch of 500"


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    with serving(stage, OURS) as front:
        yield {SINGLE: partial(_load, front, 1), BATCH: partial(_load, front, CLAIMS_EACH)}


def _load(front: Front, claims_each: int) -> Numbers:
    stage = front.stage
    stage.world.clear()
    stage.flush_broker()
    sale = open_sale(stage.world)
    stage.world.quiet()
    redis = {"redis": stage.servers.pids()["redis"]}
    result, costs = front.load(sale.template_id, claims_each=claims_each, others=redis)
    status = "202" if claims_each == 1 else "200"
    answered = result.answers.get(status, 0)
    if len(result.answers) != 1 or sale.accepted != answered * claims_each:
        raise BenchFailure(f"the front answered {result.answers}, the gate took {sale.accepted}")
    return {
        "claims_per_s": answered * claims_each / result.elapsed_s,
        "answer_p50_ms": result.answer_p50_ms,
        "answer_p99_ms": result.answer_p99_ms,
        "generator_us": result.generator_us / claims_each,
        **costs,
    }


ROW = Row(
    "claim-batch",
    "As claim-view, the front alone, with the same number of connections for both. All of a batch are accepted.",
    (
        Comparison(
            "POST /v1/claims/batch, 500 a request",
            "POST /v1/claims",
            "claims_per_s",
            BATCH,
            SINGLE,
            owed=5.0,
        ),
    ),
    _open,
)
