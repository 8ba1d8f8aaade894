"""Middleware that counts what a worker does: how long messages waited, how long tasks took, which failed."""

from __future__ import annotations

import threading
import time
from typing import Any

import dramatiq
from dramatiq.broker import MessageProxy
from dramatiq.middleware import Middleware

from coupon_workers.runtime import work_meter
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.work_meter import MESSAGE_WAIT, TASK_TIME, TASKS_FAILED, count, observe

FLUSH_TIMEOUT_MS = 1_000


class MessageMeter(Middleware):
    """Counts for one worker process, whose threads each have one message at a time.

    The sender's clock dates a message and the worker's reads its age, so hosts should run NTP. A repeated message is
    dated anew when it is sent again. Queues and tasks are ours alone: the broker sets aside what names others.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._begun = threading.local()

    def after_process_boot(self, broker: dramatiq.Broker) -> None:
        """Begin to tell: this process is forked now."""
        work_meter.flush_for_ever(make_redis(self._settings, timeout_ms=FLUSH_TIMEOUT_MS))

    def after_worker_shutdown(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        """Tell the rest."""
        work_meter.flush(make_redis(self._settings, timeout_ms=FLUSH_TIMEOUT_MS))

    def before_process_message(self, broker: dramatiq.Broker, message: MessageProxy) -> None:
        """A message is begun."""
        self._begun.s = time.perf_counter()
        sent_ms = message.options.get("requeue_timestamp", message.message_timestamp)
        waited_s = max(0.0, time.time() - sent_ms / 1000)
        observe(MESSAGE_WAIT, [waited_s], message.queue_name)

    def after_process_message(
        self,
        broker: dramatiq.Broker,
        message: MessageProxy,
        *,
        result: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        """A message has ended. One that was skipped took no time worth telling."""
        begun_s = getattr(self._begun, "s", None)
        if begun_s is None:
            return
        self._begun.s = None
        observe(TASK_TIME, [time.perf_counter() - begun_s], message.actor_name)
        if exception is not None:
            count(TASKS_FAILED, message.actor_name)
