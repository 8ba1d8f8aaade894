"""A post that answers soon, whatever the broker does: a front does not hold a customer up for a doorbell."""

from __future__ import annotations

from concurrent.futures import Future
from queue import SimpleQueue
from threading import BoundedSemaphore, Thread
from time import monotonic

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.task import Post, Task

SENDERS = 4
"""Threads that send, each with its connection: a broker that hangs costs so many and no more."""

PATIENCE_S = 1.5
"""Longer than one attempt on a broker that is away (1 s), shorter than a caller's patience. The broker's own time-outs
do not do: pika tries six times, and waits for a confirmation as long as the server is heard of."""


class TimedPost:
    """Sends by ``post`` in threads of its own, and gives each task up after ``PATIENCE_S``.

    A task given up may arrive all the same: drains and preheats may run twice. Threads may share it; its own are made
    at the first use, after a fork.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._free = BoundedSemaphore(SENDERS)
        self._tasks: SimpleQueue[tuple[Task, Future[None]]] = SimpleQueue()
        self._unmade = BoundedSemaphore(SENDERS)

    def send(self, task: Task) -> None:
        """Enqueue ``task``. Raises ``StoreUnavailable`` when the broker did not take it, or not in time."""
        ends_s = monotonic() + PATIENCE_S
        if not self._free.acquire(timeout=PATIENCE_S):
            raise StoreUnavailable("broker", "every sender waits for it")
        self._make_sender()
        sent: Future[None] = Future()
        self._tasks.put((task, sent))
        try:
            sent.result(max(0.0, ends_s - monotonic()))
        except TimeoutError:
            raise StoreUnavailable("broker", f"no answer within {PATIENCE_S:g} s") from None

    def _make_sender(self) -> None:
        """One more, until there are all; it takes over the place that was taken for the task."""
        if not self._unmade.acquire(blocking=False):
            return
        try:
            Thread(target=self._run, name="post", daemon=True).start()
        except RuntimeError as error:
            self._unmade.release()
            self._free.release()
            raise StoreUnavailable("broker", "no thread is to be had that would send it") from error

    def _run(self) -> None:
        while True:
            task, sent = self._tasks.get()
            try:
                self._post.send(task)
            except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it
                sent.set_exception(error)
            else:
                sent.set_result(None)
            finally:
                self._free.release()
