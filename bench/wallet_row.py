"""Reading a wallet against a bare Flask view, with many coupons in the table and with few."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from bench.failure import BenchFailure
from bench.front import BARE, OURS, Front, serving
from bench.order_coupons import fill_wallets
from bench.outstanding_coupons import fill_others
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import open_sale
from bench.side_world import addresses, side_world
from bench.stage import Stage
from bench.world import World

BARE_VIEW = "bare view"
FIRST_READ = "first read"
READ_AGAIN = "read again"
FIRST_READ_OF_FEW = "first read, few coupons"

COUPONS_EACH = 3
USERS_AGAIN = 100
MOST_READS_PER_S = 6_000
"""Wallets that are made ready for each second of a load: more than are read."""


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    with ExitStack() as stack:
        bare = stack.enter_context(serving(stage, BARE))
        few, few_front = _beside(stack, stage, "few_wallets", 3, stage.scale.few_outstanding)
        many, many_front = _beside(stack, stage, "many_wallets", 4, stage.scale.many_outstanding)
        yield {
            BARE_VIEW: lambda: _load(bare, stage.key, stage.mark()),
            FIRST_READ_OF_FEW: lambda: _first_read(few, few_front),
            FIRST_READ: lambda: _first_read(many, many_front),
            READ_AGAIN: lambda: _read_again(many, many_front),
        }


def _beside(stack: ExitStack, stage: Stage, name: str, redis_database: int, others: int) -> tuple[World, Front]:
    """A world with so many coupons of others, and our front on it."""
    world = stack.enter_context(side_world(stage, name, redis_database))
    fill_others(world, open_sale(world).template_id, others)
    return world, stack.enter_context(serving(stage, OURS, addresses(world)))


def _first_read(world: World, front: Front) -> Numbers:
    """Every wallet is read once: nothing of it is kept yet."""
    mark, users = front.stage.mark(), int(MOST_READS_PER_S * front.stage.scale.load_s)
    fill_wallets(world, mark, users, each=COUPONS_EACH)
    world.quiet()
    return _load(front, front.stage.new_key(world), mark)


def _read_again(world: World, front: Front) -> Numbers:
    """Wallets of a hundred users, read a moment ago and again, as of people who look at their coupons."""
    mark = front.stage.mark()
    fill_wallets(world, mark, USERS_AGAIN, each=COUPONS_EACH)
    world.quiet()
    return _load(front, front.stage.new_key(world), mark, users=USERS_AGAIN)


def _load(front: Front, key: str, mark: str, users: int = 0) -> Numbers:
    spec = replace(front.spec("wallet", MOST_READS_PER_S, mark=mark, asks_database=True), key=key, users=users)
    result, costs = front.ask(spec, {"postgres": front.stage.servers.pids()["postgres"]})
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
    "wallet",
    "GET /v1/users/{user_id}/coupons of users with three coupons each, beside coupons of others in the table. `first "
    "read`: nothing of the wallet is kept, PostgreSQL is asked and Redis told; `read again`: those of 100 users, over "
    "and over. The bare view answers three coupons that it has at hand.",
    (
        Comparison("wallet, first read", "a bare Flask view", "reads_per_s", FIRST_READ, BARE_VIEW, owed=0.5),
        Comparison("wallet, read again", "a bare Flask view", "reads_per_s", READ_AGAIN, BARE_VIEW, owed=0.5),
        Comparison(
            "wallet, first read with many coupons in the table",
            "the same with few",
            "reads_per_s",
            FIRST_READ,
            FIRST_READ_OF_FEW,
            owed=0.9,
        ),
    ),
    _open,
)
