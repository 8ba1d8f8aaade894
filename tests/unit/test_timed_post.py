"""A post that gives up in time: what it passes on, and what a broker that hangs costs."""

from __future__ import annotations

import threading
import time

import pytest

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime import timed_post
from coupon_workers.runtime.task import Task, settle_claims, sweep_gates
from coupon_workers.runtime.timed_post import SENDERS, TimedPost


class Broker:
    """Takes a task once it may."""

    def __init__(self) -> None:
        self.sent: list[Task] = []
        self.may = threading.Event()

    def send(self, task: Task) -> None:
        """Wait, and keep the task; sweeps are refused."""
        self.may.wait()
        if task == sweep_gates():
            raise StoreUnavailable("broker", "it is away")
        self.sent.append(task)


def test_tasks_are_sent_and_refusals_are_passed_on() -> None:
    """A broker that answers is not noticed to be in another thread."""
    broker = Broker()
    broker.may.set()
    post = TimedPost(broker)

    for number in range(3 * SENDERS):
        post.send(settle_claims(number, 0))
    with pytest.raises(StoreUnavailable, match="it is away"):
        post.send(sweep_gates())

    assert [settle_claims(number, 0) for number in range(3 * SENDERS)] == broker.sent


def test_a_broker_that_hangs_costs_a_moment_and_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many bells are rung; and it is rung again once it is back."""
    monkeypatch.setattr(timed_post, "PATIENCE_S", 0.1)
    broker = Broker()
    post = TimedPost(broker)
    before = threading.active_count()
    started_s = time.monotonic()

    for number in range(2 * SENDERS):
        with pytest.raises(StoreUnavailable):
            post.send(settle_claims(number, 0))

    assert time.monotonic() - started_s < 2 * SENDERS * 0.1 + 2
    assert threading.active_count() - before <= SENDERS
    broker.may.set()
    monkeypatch.undo()
    post.send(settle_claims(99, 0))
    assert settle_claims(99, 0) in broker.sent
