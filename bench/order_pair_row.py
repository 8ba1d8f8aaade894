"""Lock and redeem through HTTP against a bare pair of guarded UPDATEs through HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from bench.failure import BenchFailure
from bench.front import OURS, Front, serving
from bench.order_coupons import FIRST_COUPON, fill_wallets
from bench.row import Comparison, Numbers, Row, Sides
from bench.stage import Stage

BARE_ORDERS = "bench.peers.bare_orders"

PAIR = "lock and redeem"
BARE_PAIR = "bare UPDATEs"

MOST_PAIRS_PER_S = 2_500
"""Coupons that are made ready for each second of a load: more than any server here uses."""


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    with serving(stage, BARE_ORDERS) as bare, serving(stage, OURS) as ours:
        yield {BARE_PAIR: partial(_load, bare), PAIR: partial(_load, ours)}


def _load(front: Front) -> Numbers:
    """Every pair is of another user and coupon; all of them end redeemed."""
    stage = front.stage
    stage.world.clear()
    spec = front.spec("order pair", MOST_PAIRS_PER_S, first_coupon=FIRST_COUPON, asks_database=True)
    fill_wallets(stage.world, spec.mark, spec.most, each=1)
    stage.world.quiet()
    result, costs = front.ask(spec, {"postgres": stage.servers.pids()["postgres"]})
    pairs = result.answers.get("200", 0) // 2
    redeemed = int(stage.world.number("SELECT count(*) FROM coupon WHERE status = 'redeemed'"))
    if result.answers.keys() != {"200"} or redeemed != pairs:
        raise BenchFailure(f"the answers were {result.answers}, and {redeemed} coupons were redeemed")
    return {
        "pairs_per_s": pairs / result.elapsed_s,
        "answer_p50_ms": result.answer_p50_ms,
        "answer_p99_ms": result.answer_p99_ms,
        "generator_us": result.generator_us,
        **costs,
    }


ROW = Row(
    "order-pair",
    "An order of two lines with one coupon: lock, then redeem, each on the same keep-alive connection. Ours writes the "
    "order, its use, the coupon, its history, an event and the ledger, and answers the money to each line; the peer "
    "moves the coupon. Two transactions each, the same server, pool and flags. `us`: CPU time for an answer.",
    (
        Comparison(
            "lock and redeem, pairs a second",
            "two Flask views with a bare guarded UPDATE each",
            "pairs_per_s",
            PAIR,
            BARE_PAIR,
            owed=0.4,
        ),
    ),
    _open,
)
