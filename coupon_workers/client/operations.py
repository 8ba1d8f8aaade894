"""How the platform is doing: health, metrics, queues, dead letters and jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from coupon_workers.client.caller import Caller, segment
from coupon_workers.client.operation_answer import (
    Alive,
    DeadLetterAnswer,
    DeadLetterEnd,
    ExtraRunAnswer,
    JobAnswer,
    QueuesAnswer,
    Readiness,
)


class Operations:
    """Scope ``ops``; health is open. Each write takes an ``idempotency_key``, or makes one."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def live(self) -> Alive:
        """Whether the front answers."""
        return cast("Alive", self._caller.read("/livez"))

    def ready(self) -> Readiness:
        """How every part is doing. A front that is down is waited for, as long as a call may take."""
        return cast("Readiness", self._caller.read("/readyz"))

    def metrics(self) -> str:
        """In the text format of Prometheus."""
        return self._caller.read_text("/metrics")

    def queues(self) -> QueuesAnswer:
        """Depth and age of the queues."""
        return cast("QueuesAnswer", self._caller.read("/v1/queues"))

    def dead_letters(self) -> Iterator[DeadLetterAnswer]:
        """Messages that were given up, queue by queue, the latest first."""
        return self._caller.every("/v1/dead-letters")

    def replay(self, message_id: str, *, idempotency_key: str | None = None) -> DeadLetterEnd:
        """Back to its queue, as new."""
        return self._end(message_id, "replay", idempotency_key)

    def discard(self, message_id: str, *, idempotency_key: str | None = None) -> DeadLetterEnd:
        """Throw it away for good."""
        return self._end(message_id, "discard", idempotency_key)

    def jobs(self) -> Iterator[JobAnswer]:
        """Every job of the scheduler, with its last and next runs."""
        yield from self._caller.read("/v1/jobs")["items"]

    def run_job(self, name: str, *, idempotency_key: str | None = None) -> ExtraRunAnswer:
        """Run a job now, beside what is due."""
        path = f"/v1/jobs/{segment(name)}/run"
        return cast("ExtraRunAnswer", self._caller.write("POST", path, idempotency_key=idempotency_key))

    def _end(self, message_id: str, end: str, idempotency_key: str | None) -> DeadLetterEnd:
        path = f"/v1/dead-letters/{segment(message_id)}/{end}"
        return cast("DeadLetterEnd", self._caller.write("POST", path, idempotency_key=idempotency_key))
