"""A campaign to many users: issuing against COPY, the whole way through the worker, its memory, claims beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import psutil

from bench.campaign import Campaign
from bench.cpu_meter import CpuMeter
from bench.failure import BenchFailure
from bench.front import OURS, Front, serving
from bench.paced_claims import PacedClaims
from bench.peers.copied_rows import CopiedRows, copy_rows, read_rows
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import open_sale
from bench.stage import Stage
from bench.worker import working

ISSUING = "issuing"
COPY = "COPY"
MANY = "many users, whole way"
FEW = "few users, whole way"
ALONE = "claims alone"
BESIDE = "claims beside a campaign"

TABLES = ("coupon", "coupon_flow")
_PATIENCE_S = 900.0


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    desk = _Desk(stage)
    with serving(stage, OURS) as front:
        yield {
            ISSUING: desk.issue,
            COPY: desk.copy,
            FEW: partial(desk.whole_way, stage.scale.few_users),
            MANY: partial(desk.whole_way, stage.scale.many_users),
            ALONE: partial(_claims, front, campaign=False),
            BESIDE: partial(_claims, front, campaign=True),
        }


class _Desk:
    """The sides without a front. COPY writes the rows of the issuing before it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._world = stage.world
        self._rows = CopiedRows({})

    def issue(self) -> Numbers:
        """In this process, of a batch that is staged and started, by as many threads as a worker has."""
        count = self._stage.scale.many_users
        self._world.clear()
        campaign = Campaign.staged(self._world, open_sale(self._world), count, self._stage.mark())
        self._world.quiet()
        meter, cpu_s = CpuMeter({"postgres": self._stage.servers.pids()["postgres"]}), time.process_time()
        elapsed_s = campaign.issue_all(self._stage.settings().worker_threads)
        costs = meter.us_each(count) | {"python_us": (time.process_time() - cpu_s) * 1e6 / count}
        campaign.check_done(count)
        with closing(self._world.connect()) as connection:
            self._rows = read_rows(connection, TABLES)
        return {"users_per_s": count / elapsed_s, **costs}

    def copy(self) -> Numbers:
        """The rows of the issuing, into the same tables, which are empty again."""
        count = self._stage.scale.many_users
        self._world.execute("TRUNCATE coupon, coupon_flow")
        self._world.quiet()
        with closing(self._world.connect()) as connection:
            meter = CpuMeter({"postgres": self._stage.servers.pids()["postgres"]})
            elapsed_s = copy_rows(connection, self._rows)
            costs = meter.us_each(count)
        if self._world.number("SELECT count(*) FROM coupon") != count:
            raise BenchFailure("COPY did not write every row")
        return {"users_per_s": count / elapsed_s, **costs}

    def whole_way(self, count: int) -> Numbers:
        """From the file in the database to the last coupon, by the worker; the most memory one of its processes had."""
        with working(self._stage) as worker:
            assert worker.pid is not None
            campaign = Campaign.of_file(self._world, open_sale(self._world), count, self._stage.mark())
            began_s = time.perf_counter()
            campaign.send()
            campaign.wait_done(count, _PATIENCE_S, partial(self._stage.check_runs, worker))
            elapsed_s = time.perf_counter() - began_s
            memory = max(process.memory_info().rss for process in psutil.Process(worker.pid).children(recursive=True))
        return {"users_per_s": count / elapsed_s, "memory_mib": memory / 1024**2}


def _claims(front: Front, *, campaign: bool) -> Numbers:
    """Claims of one template at a steady rate, while a campaign gives away another, or while none does."""
    stage = front.stage
    with working(stage) as worker:
        sale = open_sale(stage.world)
        if campaign:
            given = Campaign.of_file(stage.world, open_sale(stage.world), stage.scale.beside_users, stage.mark())
            stage.world.quiet()
            given.send()
            given.wait_running(partial(stage.check_runs, worker))
        else:
            stage.world.quiet()
        clients = PacedClaims(front, sale.template_id)
        clients.run(stage.scale.beside_rate, stage.scale.latency_s)
        if campaign:
            given.check_running()
        sale.wait_issued(clients.accepted, partial(stage.check_runs, worker))
        sale.wait_acknowledged()
    return clients.numbers()


ROW = Row(
    "fan-out",
    "`issuing`: the steps, by as many threads as a worker has, which write in turn. `COPY`: one connection, the same "
    "rows of coupon and coupon_flow into the same tables. Nobody listens to the events, so none are written. "
    "`whole way`: a file in the database is read, staged, reserved and issued by the real worker. `claims`: open loop "
    "at a steady rate on another template, beside a campaign that lasts longer or without one.",
    (
        Comparison("issuing, users a second", "COPY of the same rows", "users_per_s", ISSUING, COPY, owed=0.6),
        Comparison(
            "memory of a worker process (MiB)",
            "200 MiB",
            "memory_mib",
            MANY,
            constant=200.0,
            owed=1.0,
            sense="at most",
        ),
        Comparison("memory, many users", "the same, few users", "memory_mib", MANY, FEW, owed=1.2, sense="at most"),
        Comparison(
            "p99 of a claim's answer beside a campaign",
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
