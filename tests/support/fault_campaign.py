"""One experiment: templates on sale, a load on them, and after the fault healing, draining and the checker's word."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from sqlalchemy import Engine, NullPool, create_engine

from coupon_workers.checking.report import check_all
from coupon_workers.runtime.process import make_services
from tests.support.fault_client import Answer, HistoryHttp
from tests.support.fault_load import Load
from tests.support.fault_plan import FaultPlan, Wanted
from tests.support.fault_post import call_dead, encode, put
from tests.support.fault_sale import Offer, open_offers
from tests.support.fault_system import PEPPER, FaultSystem
from tests.support.fault_wait import until
from tests.support.history import History, Operation, read_history
from tests.support.history_books import pending_key
from tests.support.history_checker import Evidence, broken_letters

RECOVERED_S = 20.0
"""R: within this of healing a new claim is accepted and issued."""

DRAINED_S = 20.0
"""T: within this of healing every accepted claim has ended: the bell's life, a sweep, a worker's start."""

CLIENTS = 12
ASKED_AGAIN = 150


class Campaign:
    """``offers`` on sale at ``system``; files in ``folder``. Servers may come and go: nothing is kept connected."""

    def __init__(
        self, system: FaultSystem, folder: Path, *, seed: int, rate: float, offers: Sequence[Offer], users: int
    ) -> None:
        self.system = system
        self.name = f"s{seed}"
        self._seed = seed
        self._history = History(folder / "desk.jsonl")
        self._desk = HistoryHttp(system.front.port, system.key, self._history)
        self._log_starts = {path: path.stat().st_size for path in system.log_files}
        self.template_ids = open_offers(self._desk, offers, self.name)
        wanted = [Wanted(str(i), offer.weight) for i, offer in zip(self.template_ids, offers, strict=True)]
        plan = FaultPlan(seed, CLIENTS, users, wanted, self.name)
        self.load = Load(system.front, plan, rate, folder / "history.jsonl")
        self.facts: Counter[str] = Counter()

    @contextmanager
    def under_load(self) -> Iterator[None]:
        """The block breaks things while the clients ask."""
        with self.load.running():
            yield

    @property
    def engine(self) -> Engine:
        """A way to PostgreSQL, without a pool."""
        return create_engine(self._url("database_url"), poolclass=NullPool)

    @property
    def stock(self) -> redis.Redis:
        """A way to the stock's Redis."""
        return redis.Redis.from_url(self._url("redis_url"))

    @property
    def broker(self) -> redis.Redis:
        """A way to the broker's Redis."""
        return redis.Redis.from_url(self._url("broker_url"))

    def ask(self, method: str, target: str, body: Any = None, *, key: str = "") -> Answer:
        """Ask as an operator; written down like everything else. ``key``: the ``Idempotency-Key`` of a write."""
        return self._desk.ask("admin", method, target, body, key=key)

    def queued(self) -> int:
        """Accepted claims of this campaign that wait to be settled."""
        lengths: list[Any] = [self.stock.xlen(pending_key(template_id)) for template_id in self.template_ids]
        return sum(lengths)

    def ring(self) -> None:
        """Ring every bell, as a sweep does in its time."""
        for template_id in self.template_ids:
            put(self.broker, "settle", encode("settle_claims", [template_id, 0], "settle"))

    def generation(self, template_id: int) -> bytes | None:
        """What names the last rebuild of a template's gate; None while it is not whole."""
        found: Any = self.stock.get(f"cw:{{t{template_id}.0}}:generation")
        return None if found is None else bytes(found)

    def is_warm(self, template_id: int) -> bool:
        """Whether the gate of a template is whole."""
        return self.generation(template_id) is not None

    def heal(self) -> None:
        """Wait until the system works again, everything accepted has ended, and every open question is answered."""
        self.facts["ready ms"] = round(1000 * self.system.wait_ready(RECOVERED_S))
        self.facts["recovered ms"] = round(1000 * until(self._is_back, RECOVERED_S, "a claim issued"))
        self.facts["drained ms"] = round(1000 * until(lambda: self.queued() == 0, DRAINED_S, "the end of all claims"))
        self._ask_again()
        until(lambda: self.queued() == 0, DRAINED_S, "the end of the claims asked again")
        until(self._broker_rests, DRAINED_S, "the end of all messages")

    def operations(self) -> list[Operation]:
        """Everything asked so far, in order."""
        both = [*read_history(self.load.history.path), *read_history(self._history.path)]
        return sorted(both, key=lambda operation: operation.sent_s)

    def broken_letters(self) -> dict[str, list[str]]:
        """The independent checker's word, and the product's own: all of it empty when everything holds."""
        operations = self.operations()
        self._count(operations)
        evidence = Evidence(
            self.engine,
            self.stock,
            self.broker,
            self.template_ids,
            operations,
            self.logs(),
            (self.system.key, PEPPER),
        )
        found = broken_letters(evidence)
        own = [str(breach) for breach in self._own_breaches()]
        return found | ({"check": own[:5]} if own else {})

    def logs(self) -> list[str]:
        """What the system's processes and servers have written since this campaign began."""
        texts = []
        for path in self.system.log_files:
            with path.open(errors="replace") as log:
                log.seek(self._log_starts.get(path, 0))
                texts.append(log.read())
        return texts

    def _own_breaches(self) -> list[Any]:
        settings = self.system.settings
        services = make_services(settings)
        try:
            return list(check_all(services, patience_s=2.0).breaches)
        finally:
            services.engine.dispose()

    def _url(self, name: str) -> str:
        value: str = getattr(self.system.settings, name).get_secret_value()
        return value

    def _is_back(self) -> bool:
        """Whether a new claim is accepted and issued."""
        number = self._history.answers
        body = {"template_id": str(self.template_ids[-1]), "user_id": f"{self.name}-back", "request_id": f"b{number}"}
        answer = self._desk.ask("claim", "POST", "/v1/claims", body)
        if not answer.claim_id:
            return False
        told = self._desk.ask("status", "GET", f"/v1/claims/{answer.claim_id}?wait=3")
        return isinstance(told.body, dict) and told.body.get("status") == "issued"

    def _ask_again(self) -> None:
        """Each request that was left open, and some of the others, asked once more: now everybody gets an answer."""
        last = {op.request: op for op in self.operations() if op.name == "claim"}
        left_open = [request for request, op in last.items() if op.may_have_happened]
        rest = [request for request, op in last.items() if op.claim_id]
        again = left_open + random.Random(self._seed).sample(rest, min(ASKED_AGAIN, len(rest)))
        self.facts["asked again"] = len(again)
        for template_id, user_id, request_id in again:
            body = {"template_id": template_id, "user_id": user_id, "request_id": request_id}
            answer = self._desk.ask("claim", "POST", "/v1/claims", body)
            assert answer.status not in (0, 503), f"{body} was left open: {answer}"

    def _broker_rests(self) -> bool:
        """Nothing waits and nothing is in anybody's hands.

        Whoever died is called dead at once, as after fifteen seconds of silence; who lives says so within a tenth of
        a second.
        """
        broker = self.broker
        call_dead(broker)
        lengths: list[Any] = [broker.hlen(f"dramatiq:{queue}.msgs") for queue in ("settle", "care", "care.DQ")]
        return not any(lengths)

    def _count(self, operations: Sequence[Operation]) -> None:
        claims = [operation for operation in operations if operation.name in ("claim", "wrong")]
        self.facts["claims asked"] = len(claims)
        self.facts["unanswered"] = sum(operation.heard == "unknown" for operation in claims)
        for operation in claims:
            if operation.status in (200, 202):
                self.facts[str(operation.status)] += 1
            elif operation.status >= 500:
                self.facts[f"{operation.status} {operation.code}"] += 1


OpenCampaign = Callable[..., Campaign]
"""The fixture of ``tests/faults``: see there for its arguments."""
