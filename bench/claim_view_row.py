"""``POST /v1/claims`` against a bare Flask view on the same server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from bench.failure import BenchFailure
from bench.front import BARE, OURS, Front, serving
from bench.generator import LoadResult
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import Sale, open_sale
from bench.stage import Stage
from bench.worker import working

ANY_TEMPLATE = 653_247_040_368_672_768

BARE_VIEW = "bare view"
FRONT = "front"
FRONT_AND_WORKER = "front and worker"


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    with serving(stage, BARE) as bare, serving(stage, OURS) as ours:
        yield {
            BARE_VIEW: partial(_load_bare, bare),
            FRONT: partial(_load_front, ours),
            FRONT_AND_WORKER: partial(load_front_and_worker, ours),
        }


def _load_bare(front: Front) -> Numbers:
    front.stage.world.quiet()
    result, costs = front.load(ANY_TEMPLATE)
    if result.answers.keys() != {"202"}:
        raise BenchFailure(f"the bare view answered {result.answers}")
    return answer_numbers(result) | costs


def _load_front(front: Front) -> Numbers:
    """Nothing is settled: what is accepted stays in the stream, and the bells in the broker."""
    stage = front.stage
    stage.world.clear()
    stage.flush_broker()
    sale = open_sale(stage.world)
    stage.world.quiet()
    result, costs = front.load(sale.template_id, others={"redis": stage.servers.pids()["redis"]})
    check_accepted(result, sale)
    return answer_numbers(result) | costs


def load_front_and_worker(front: Front) -> dict[str, float]:
    """As in production: our worker settles what is accepted, on the same cores, while it is accepted.

    ``durable_per_s``: coupons that were durable when the last answer came, for each second of the load.
    """
    stage = front.stage
    with working(stage) as worker:
        assert worker.pid is not None
        sale = open_sale(stage.world)
        stage.world.quiet()
        others = {"redis": stage.servers.pids()["redis"], "postgres": stage.servers.pids()["postgres"]}
        result, costs = front.load(sale.template_id, others={**others, "worker": worker.pid})
        durable = sale.issued
        check_accepted(result, sale)
        sale.wait_issued(result.answers["202"], partial(stage.check_runs, worker))
        sale.wait_acknowledged()
    return answer_numbers(result) | costs | {"durable_per_s": durable / result.elapsed_s}


def check_accepted(result: LoadResult, sale: Sale) -> None:
    """Raise ``BenchFailure`` unless every answer is a 202 and the gate has taken as many from the stock."""
    if result.answers != {"202": sale.accepted}:
        raise BenchFailure(f"the front answered {result.answers}, the gate took {sale.accepted}")


def answer_numbers(result: LoadResult) -> dict[str, float]:
    """What the client saw of a load of single claims."""
    return {
        "claims_per_s": sum(result.answers.values()) / result.elapsed_s,
        "answer_p50_ms": result.answer_p50_ms,
        "answer_p99_ms": result.answer_p99_ms,
        "generator_us": result.generator_us,
    }


ROW = Row(
    "claim-view",
    "Closed loop over keep-alive connections. Same server, processes, threads and flags for both; same generator. "
    "`front`: no worker runs, nothing is settled. `front and worker`: claims are settled meanwhile on the same cores.",
    (
        Comparison(
            "POST /v1/claims accepted, the front alone",
            "a bare Flask view that parses and answers 202",
            "claims_per_s",
            FRONT,
            BARE_VIEW,
            owed=0.65,
            aim=0.75,
        ),
        Comparison(
            "POST /v1/claims accepted, settled meanwhile",
            "the same, with nothing beside it",
            "claims_per_s",
            FRONT_AND_WORKER,
            BARE_VIEW,
        ),
        Comparison(
            "CPU of the web processes for a claim (µs)", "the bare view", "web_us", FRONT, BARE_VIEW, sense="at most"
        ),
    ),
    _open,
)
