"""A web server under load: ours or the bare one, what it answered, and what each answer cost."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from random import randrange

from bench.asked import Kind, LoadSpec
from bench.cpu_meter import CpuMeter
from bench.failure import BenchFailure
from bench.generator import PATIENCE_S, LoadResult
from bench.stage import HOST, ROOT, Stage
from coupon_workers.embedded.child import ChildProcess
from coupon_workers.embedded.listen_address import free_port
from coupon_workers.errors import EmbeddedServerError
from coupon_workers.runtime.database import FRONT_WAITING

OURS = "web"
BARE = "bench.peers.bare_view"
_PORTS = (20_000, 30_000)
_START_S = 60.0
_MOST_REQUESTS_PER_S = 12_000
_MOST_BATCHES_PER_S = 200
"""Requests that are made ready for each second of a load: more than any server here answers."""


@dataclass(frozen=True, slots=True)
class Front:
    """A server that answers."""

    stage: Stage
    child: ChildProcess
    port: int

    def load(
        self,
        template_id: int,
        *,
        claims_each: int = 1,
        others: Mapping[str, int] | None = None,
        kind: Kind | None = None,
        seconds: float | None = None,
    ) -> tuple[LoadResult, dict[str, float]]:
        """One load of claims for ``seconds``, or the scale's ``load_s``; with it the CPU time for each claim of the
        front and of ``others`` (name → process).

        Raises ``BenchFailure`` when the generator or the server fails.
        """
        kind = kind or ("claim" if claims_each == 1 else "claim batch")
        per_s = _MOST_REQUESTS_PER_S if claims_each == 1 else _MOST_BATCHES_PER_S
        spec = self.spec(kind, per_s, template_id=template_id, claims_each=claims_each, seconds=seconds)
        return self.ask(spec, others)

    def ask(self, spec: LoadSpec, others: Mapping[str, int] | None = None) -> tuple[LoadResult, dict[str, float]]:
        """As ``load``, for any load; CPU time is for each answer, or each claim of a batch."""
        assert self.child.pid is not None
        meter = CpuMeter({"web": self.child.pid, **(others or {})})
        result = _generate(spec)
        return result, meter.us_each(sum(result.answers.values()) * spec.claims_each)

    def spec(
        self,
        kind: Kind,
        chains_per_s: int,
        *,
        template_id: int = 0,
        claims_each: int = 1,
        first_coupon: int = 0,
        mark: str | None = None,
        seconds: float | None = None,
        asks_database: bool = False,
    ) -> LoadSpec:
        """A load of ``seconds``, or the stage's length, of no more than ``chains_per_s`` chains a second.

        ``asks_database``: no more connections than threads of one front may wait for PostgreSQL, wherever they land.
        """
        scale = self.stage.scale
        seconds = seconds or scale.load_s
        connections = min(scale.connections, FRONT_WAITING) if asks_database else scale.connections
        return LoadSpec(
            kind=kind,
            port=self.port,
            key=self.stage.key,
            template_id=template_id,
            mark=mark or self.stage.mark(),
            connections=connections,
            seconds=seconds,
            most=max(connections, int(chains_per_s * seconds)),
            claims_each=claims_each,
            first_coupon=first_coupon,
        )


@contextmanager
def serving(stage: Stage, module: str, env: Mapping[str, str] | None = None) -> Iterator[Front]:
    """Start the web server ``module`` on a free port and wait until it answers. ``env``: what it is told beside."""
    port = _port()
    name = module.rpartition(".")[2]
    with stage.program(name, [module], {"COUPON_HTTP_PORT": str(port), **(env or {})}) as child:
        deadline = time.monotonic() + _START_S
        while not _answers(port):
            stage.check_runs(child)
            if time.monotonic() > deadline:
                raise BenchFailure(f"{name} did not answer within {_START_S:g} s")
            time.sleep(0.05)
        yield Front(stage, child, port)


def _port() -> int:
    """A free port below those that outgoing connections take: between the look and the start nobody comes there."""
    while True:
        with suppress(EmbeddedServerError):
            return free_port(HOST, randrange(*_PORTS))


def _answers(port: int) -> bool:
    """Whether anything comes back; the bare server has no address that says it is well."""
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/livez")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def _generate(spec: LoadSpec) -> LoadResult:
    done = subprocess.run(
        [sys.executable, "-m", "bench.generator"],
        cwd=ROOT,
        input=json.dumps(asdict(spec)),
        capture_output=True,
        text=True,
        timeout=spec.seconds + 3 * PATIENCE_S,
        check=False,
    )
    if done.returncode != 0:
        raise BenchFailure(f"the load of {spec.kind}s broke: {done.stderr.strip().rpartition(chr(10))[2]}")
    return LoadResult(**json.loads(done.stdout))
