"""One round trip for the questions that several threads of a process have at the same moment.

Whoever comes while nobody is under way goes at once, alone. Who comes meanwhile waits; the first of them goes next and
takes all who wait along. So a quiet process keeps the shortest way, and a busy one makes fewer and fuller trips: the
sleep and the wake-up around a trip cost more than the question that is asked on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from coupon_workers.errors import StoreUnavailable

MOST_TOGETHER = 64
"""Questions of a trip: as many as a front has threads, and a bound for how long the first of them waits."""

Ask = Callable[[Sequence[bytes]], list[Any]]


class _Passenger:
    """A thread with its question. ``door`` opens when it has its answer or its failure, or is to lead a trip."""

    __slots__ = ("answer", "command", "door", "failure", "leads")

    def __init__(self, command: bytes) -> None:
        self.command = command
        self.answer: Any = None
        self.failure: str | None = None
        self.leads = False
        self.door = Lock()
        self.door.acquire()


class SharedTrip:
    """A way to a server for the threads of a process; one trip is under way at a time.

    ``ask`` sends packed commands and returns their answers, in order; it is called by the thread that leads, never by
    two at a time, so it may own a connection.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._turn = Lock()
        self._waiting: list[_Passenger] = []
        self._under_way = False

    def ask(self, command: bytes) -> Any:
        """The answer to ``command``.

        Raises ``StoreUnavailable`` when it did not come: a trip that fails, fails for all who are along or wait for
        it, so that nobody waits for more than one. What the server did is then unknown.
        """
        own = _Passenger(command)
        try:
            with self._turn:
                self._waiting.append(own)
                own.leads, self._under_way = not self._under_way, True
            if not own.leads:
                own.door.acquire()
            if own.leads:
                self._lead(own)
        except BaseException:  # an interruption: whoever comes after must not wait for this thread
            self._leave(own)
            raise
        if own.failure is not None:
            raise StoreUnavailable("Redis", own.failure)
        return own.answer

    def _lead(self, own: _Passenger) -> None:
        with self._turn:
            along = self._waiting[:MOST_TOGETHER]
            del self._waiting[:MOST_TOGETHER]
        failure: str | None = "whoever asked was interrupted"
        try:
            answers = self._ask([each.command for each in along])
            for each, answer in zip(along, answers, strict=True):
                each.answer = answer
            failure = None
        except StoreUnavailable as error:
            failure = str(error)
        finally:
            with self._turn:
                if failure is not None:
                    along += self._waiting
                    self._waiting.clear()
                self._pass_on(own)
            for each in along:
                each.failure = failure
                if each is not own:
                    each.door.release()

    def _leave(self, own: _Passenger) -> None:
        with self._turn:
            if own in self._waiting:
                self._waiting.remove(own)
            if own.leads:
                self._pass_on(own)

    def _pass_on(self, own: _Passenger) -> None:
        """Have the next one lead, if there is one. To be called with the turn."""
        own.leads = False
        self._under_way = bool(self._waiting)
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].door.release()
