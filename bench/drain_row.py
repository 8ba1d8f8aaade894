"""Claims made durable: our settling against a message a claim, and against COPY."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from importlib import import_module

from bench.cpu_meter import CpuMeter
from bench.failure import BenchFailure
from bench.peers.claim_message import ClaimMessage, claim_messages
from bench.peers.copied_rows import CopiedRows, copy_rows, read_rows
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import Sale, open_sale
from bench.stage import Stage
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.claiming.settlement import drain
from coupon_workers.embedded.servers import BROKER_URL
from coupon_workers.runtime.task import settle_claims

DRAIN = "drain"
COPY = "COPY"
WORKER = "worker"
DRAMATIQ = "Dramatiq"
CELERY = "Celery"

_NEVER_S = 3_600.0
"""A drain's turn: it is measured to the end of the stream, not to the end of its turn."""


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    desk = _Desk(stage)
    yield {
        DRAIN: desk.drain,
        COPY: desk.copy,
        WORKER: desk.work,
        DRAMATIQ: partial(desk.messages, "bench.peers.dramatiq_claims", desk.dramatiq_command()),
        CELERY: partial(desk.messages, "bench.peers.celery_claims", desk.celery_command()),
    }


class _Desk:
    """The sides of this row. COPY writes the rows of the drain before it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._world = stage.world
        self._rows = CopiedRows({})
        self._processes = max(os.cpu_count() or 1, self._world.settings.worker_processes)
        self._threads = self._world.settings.worker_threads

    def dramatiq_command(self) -> list[str]:
        """As many processes and threads as our own worker has here."""
        module = "bench.peers.dramatiq_claims"
        size = ["--processes", str(self._processes), "--threads", str(self._threads)]
        return ["dramatiq", module, *size, "--skip-logging"]

    def celery_command(self) -> list[str]:
        """As many tasks at a time, each in a process of its own."""
        app = ["-A", "bench.peers.celery_claims", "worker"]
        quiet = ["--loglevel", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        return ["celery", *app, "--pool", "prefork", "--concurrency", str(self._processes * self._threads), *quiet]

    def drain(self) -> Numbers:
        """In this process, one drain, one connection to PostgreSQL: ``settlement.drain`` on a filled stream."""
        count = self._stage.scale.drain_claims
        sale = self._filled(count)
        meter, cpu_s = CpuMeter(self._pids("postgres", "redis")), time.process_time()
        began_s = time.perf_counter()
        settled = drain(self._world.services, sale.template_id, 0, turn_s=_NEVER_S)
        elapsed_s = time.perf_counter() - began_s
        costs = meter.us_each(count) | {"python_us": (time.process_time() - cpu_s) * 1e6 / count}
        if settled != count:
            raise BenchFailure(f"{settled} of {count} claims were settled")
        sale.check_books(count)
        with closing(self._world.connect()) as connection:
            self._rows = read_rows(connection)
        return {"claims_per_s": count / elapsed_s, **costs}

    def copy(self) -> Numbers:
        """The rows of the drain, into the same tables, which are empty again."""
        count = self._stage.scale.drain_claims
        self._world.execute("TRUNCATE coupon, coupon_flow, outbox")
        self._world.quiet()
        with closing(self._world.connect()) as connection:
            meter = CpuMeter(self._pids("postgres"))
            elapsed_s = copy_rows(connection, self._rows)
            costs = meter.us_each(count)
        if self._world.number("SELECT count(*) FROM coupon") != count:
            raise BenchFailure("COPY did not write every row")
        return {"claims_per_s": count / elapsed_s, **costs}

    def work(self) -> Numbers:
        """Through the real worker: its message waits in the broker when it starts, the claims in the stream."""
        count = self._stage.scale.drain_claims
        sale = self._filled(count)
        self._world.services.post.send(settle_claims(sale.template_id, 0))
        return self._run(sale, count, ["actors"], {"COUPON_WORKER_PROCESSES": str(self._processes)})

    def messages(self, module: str, command: list[str]) -> Numbers:
        """A message a claim, all in the broker when the peer's worker starts."""
        count = self._stage.scale.message_claims
        self._world.clear()
        self._stage.flush_broker()
        sale = open_sale(self._world)
        claims = claim_messages(sale.template_id, self._stage.mark(), count, time.time_ns() // 1_000_000)
        send_all: Callable[[str, Iterable[ClaimMessage]], None] = import_module(module).send_all
        send_all(self._stage.servers.urls()[BROKER_URL], claims)
        self._world.quiet()
        return self._run(sale, count, command, {})

    def _run(self, sale: Sale, count: int, command: list[str], env: dict[str, str]) -> Numbers:
        """From the start of the first transaction to the last commit, by PostgreSQL's clock: the start of the
        processes is not counted, and all who write in processes of their own are timed alike."""
        meter = CpuMeter(self._pids("postgres"))
        with self._stage.program(f"drain-{command[0]}", command, env) as child:
            elapsed_s = sale.wait_issued(count, partial(self._stage.check_runs, child))
            costs = meter.us_each(count)
            sale.wait_acknowledged()
        sale.check_books(count)
        return {"claims_per_s": count / elapsed_s, **costs}

    def _filled(self, count: int) -> Sale:
        self._world.clear()
        sale = open_sale(self._world)
        mark = self._stage.mark()
        sale.fill(ClaimFront(self._world.services), [f"u-{mark}-{number:07}" for number in range(count)])
        self._stage.flush_broker()
        self._world.quiet()
        return sale

    def _pids(self, *names: str) -> dict[str, int]:
        pids = self._stage.servers.pids()
        return {name: pids[name] for name in names}


_PER_MESSAGE = "one Dramatiq message and transaction a claim"
_PER_TASK = "one Celery task and transaction a claim"

ROW = Row(
    "drain",
    "`drain` and `COPY`: one connection, the same rows into the same empty tables. `worker`, `Dramatiq`, "
    "`Celery`: real worker processes of equal concurrency on the same broker, the queue filled before they start.",
    (
        Comparison("claims made durable, in process", _PER_MESSAGE, "claims_per_s", DRAIN, DRAMATIQ, owed=10.0),
        Comparison("claims made durable, in process", _PER_TASK, "claims_per_s", DRAIN, CELERY, owed=10.0),
        Comparison(
            "claims made durable, through the worker", _PER_MESSAGE, "claims_per_s", WORKER, DRAMATIQ, owed=10.0
        ),
        Comparison("claims made durable, through the worker", _PER_TASK, "claims_per_s", WORKER, CELERY, owed=10.0),
        Comparison(
            "claims made durable, in process",
            "COPY of the same rows into the same indexed tables",
            "claims_per_s",
            DRAIN,
            COPY,
            owed=0.5,
        ),
    ),
    _open,
)
