"""The claim centre against a bare Flask view, with few templates on sale and with hundreds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from bench.failure import BenchFailure
from bench.front import BARE, OURS, Front, serving
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import open_sale
from bench.side_world import addresses, side_world
from bench.stage import Stage
from bench.world import World

FEW = 20
MOST_READS_PER_S = 6_000

BARE_FEW = "bare view, 20 offers"
FEW_OFFERS = "20 templates"
BARE_MANY = "bare view, as many offers"
MANY_OFFERS = "many templates"


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    many = stage.scale.many_offers
    with ExitStack() as stack:
        bare = stack.enter_context(serving(stage, BARE))
        world = stack.enter_context(side_world(stage, "claim_center", 5))
        for _ in range(many):
            open_sale(world)
        ours = stack.enter_context(serving(stage, OURS, addresses(world)))
        key = stage.new_key(world)
        yield {
            BARE_FEW: lambda: _load(bare, world, stage.key, FEW),
            FEW_OFFERS: lambda: _load(ours, world, key, FEW),
            BARE_MANY: lambda: _load(bare, world, stage.key, many),
            MANY_OFFERS: lambda: _load(ours, world, key, many),
        }


def _load(front: Front, world: World, key: str, offers: int) -> Numbers:
    """Every reader is another user."""
    world.quiet()
    spec = replace(front.spec("claim center", MOST_READS_PER_S), key=key, offers=offers)
    pids = front.stage.servers.pids()
    result, costs = front.ask(spec, {name: pids[name] for name in ("postgres", "redis")})
    if result.answers.keys() != {"200"}:
        raise BenchFailure(f"the answers were {result.answers}")
    return {
        "reads_per_s": result.answers["200"] / result.elapsed_s,
        "answer_p50_ms": result.answer_p50_ms,
        "answer_p99_ms": result.answer_p99_ms,
        "generator_us": result.generator_us,
        **costs,
    }


ROW = Row(
    "claim-center",
    "GET /v1/claim-center, every time of another user: one page of 20 templates, and one of as many as the scale says "
    "(200). Each is on sale, with a limit of one a user. The bare view answers as many offers that it has at hand.",
    (
        Comparison("claim centre, 20 templates", "a bare Flask view", "reads_per_s", FEW_OFFERS, BARE_FEW, owed=0.5),
        Comparison("claim centre, 200 templates", "a bare Flask view", "reads_per_s", MANY_OFFERS, BARE_MANY, owed=0.5),
    ),
    _open,
)
