"""Runs the processes of a Procfile and keeps them, and the servers they need, running."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import psutil

from coupon_workers.embedded.child import ChildProcess
from coupon_workers.embedded.keeper import Keeper, Restartable
from coupon_workers.embedded.output import Output
from coupon_workers.embedded.procfile import Procfile
from coupon_workers.errors import EmbeddedServerError

STOP_GRACE_S = 30.0
"""The time all processes together have to end their work; the worker's own limit must be shorter."""

_FRONT_GRACE_S = 5.0  # to answer the requests it has taken, before the rest is told
_STOP_ORDER = ("web", "scheduler", "worker")  # no new work, then no more planning of it, then the end of what is left
_ENDS_BEFORE_GIVING_UP = 3


class Supervisor:
    """The lasting processes of ``procfile``, run with ``env``, and ``services`` that were started before.

    Whatever of them ends is started again within seconds; ``restarted`` is called after each such start.
    """

    def __init__(
        self,
        procfile: Procfile,
        env: Mapping[str, str],
        output: Output,
        *,
        services: Sequence[Restartable] = (),
        restarted: Callable[[], None] = lambda: None,
    ) -> None:
        self._output = output
        self._children = [
            ChildProcess(name, command, env, procfile.folder, output) for name, command in procfile.lasting.items()
        ]
        self._keepers = [self._keeper(what, restarted) for what in (*self._children, *services)]

    def start(self) -> None:
        """Start every process, and begin to watch them and the services."""
        for child in self._children:
            child.start()
        for keeper in self._keepers:
            keeper.watch()

    def pids(self) -> dict[str, int]:
        """The process of each entry and service that runs, by its name; masters only."""
        return {keeper.what.name: keeper.what.pid for keeper in self._keepers if keeper.what.pid is not None}

    def process_tree(self) -> dict[str, list[int]]:
        """Like :meth:`pids`, with every descendant after its master."""
        return {name: [pid, *_descendants(pid)] for name, pid in self.pids().items()}

    def check_alive(self) -> None:
        """Raise ``EmbeddedServerError`` when a process ends again and again: it will not get better by itself."""
        for keeper in self._keepers:
            if keeper.ends >= _ENDS_BEFORE_GIVING_UP:
                raise EmbeddedServerError(f"{keeper.what.name} ended {keeper.ends} times; its own output says why")

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """End the processes: the front first, then the scheduler, then the workers; by force after ``grace_s``.

        The services are only let go, for their owner to stop.
        """
        deadline = time.monotonic() + grace_s
        for keeper in self._keepers[: len(self._children)]:
            keeper.let_go()
        ordered = sorted(self._children, key=lambda child: _stop_rank(child.name))
        for child in ordered:
            child.terminate()
            if child.name == _STOP_ORDER[0]:
                child.ended_within(min(_FRONT_GRACE_S, grace_s))
        for child in ordered:
            child.stop(max(0.0, deadline - time.monotonic()))
        for keeper in self._keepers[len(self._children) :]:
            keeper.let_go()

    def _keeper(self, what: Restartable, restarted: Callable[[], None]) -> Keeper:
        return Keeper(what, say=partial(self._output.say, what.name), restarted=restarted)


def _stop_rank(name: str) -> int:
    return _STOP_ORDER.index(name) if name in _STOP_ORDER else len(_STOP_ORDER)


def _descendants(pid: int) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []
