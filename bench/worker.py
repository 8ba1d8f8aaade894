"""Our worker, the real one, beside what is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bench.sale import open_sale
from bench.stage import Stage
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.embedded.child import ChildProcess


@contextmanager
def working(stage: Stage, env: Mapping[str, str] | None = None) -> Iterator[ChildProcess]:
    """Start ``python -m actors`` and wait until it has settled a claim of its own: it is warm then.

    The world is empty afterwards, but for what the block puts there.
    """
    stage.flush_broker()
    with stage.program("actors", ["actors"], env) as child:
        sale = open_sale(stage.world)
        sale.fill(ClaimFront(stage.world.services), [f"first-{stage.mark()}"])
        sale.wait_issued(1, lambda: stage.check_runs(child))
        sale.wait_acknowledged()
        stage.world.clear()
        yield child
