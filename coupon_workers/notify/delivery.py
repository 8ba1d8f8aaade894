"""Delivering: what is due to one target is sent, message by message, and what came of it is written down.

At least once: a worker that dies between the sending and the writing leaves a delivery that is sent again, under the
same message id, once its lease has run out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from time import monotonic

from coupon_workers.notify import delivery_lease as lease
from coupon_workers.notify.channel import Channel, Message
from coupon_workers.notify.delivery_lease import Attempt, Taken
from coupon_workers.notify.failure import DeliveryFailure, Gone, Refused, TryAgain, Unreachable
from coupon_workers.notify.letter import Letter, Pointless, write_letters
from coupon_workers.notify.target import end_pause, is_paused, open_channel, pause, webhook_of
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

TURN_S = 5.0
"""A target's turn: then others have theirs, and the relay wakes this one again."""

BATCH = 10

LANES = 4
"""Messages that are on their way to one target at a time, once more than a batch is due. Those of a coupon are never in
two lanes: only the first of them can be taken."""

LATEST_START_S = lease.LEASE_S / 2
"""A message is not begun later than this in its lease: sending it takes seconds, and the lease is to outlive it."""


def deliver(services: Services, target: str, *, turn_s: float = TURN_S) -> int:
    """Send what is due to ``target`` until nothing is, its turn is over, or it cannot be reached; how many were tried.

    Any number may work on one target: each message is in one hand at a time. Raises ``StoreUnavailable``.
    """
    turn = _Turn(services, target, monotonic() + turn_s)
    with ThreadPoolExecutor(LANES - 1, thread_name_prefix="lane") as lanes:
        others: list[Future[int]] = []

        def widen() -> None:
            others.extend(lanes.submit(turn.run) for _ in range(LANES - 1))

        try:
            tried = turn.run(widen)
        except BaseException:
            turn.over.set()
            raise
        return tried + sum(other.result() for other in others)


class _Turn:
    """One turn of a target, in one lane or several, each with a connection of its own. ``over`` ends them all."""

    def __init__(self, services: Services, target: str, ends_s: float) -> None:
        self._services = services
        self._target = target
        self._ends_s = ends_s
        self.over = Event()

    def run(self, widen: Callable[[], None] | None = None) -> int:
        """Work in this thread; how many were tried. ``widen`` is called once there is more than one batch."""
        channel = open_channel(self._services, self._target)
        if channel is None:
            return 0
        tried = 0
        try:
            while not self.over.is_set():
                began_s = monotonic()
                batch = self._take()
                if widen is not None and len(batch) == BATCH and monotonic() < self._ends_s:
                    widen()
                    widen = None
                sent = _send_batch(
                    self._services, channel, batch, self.over, min(self._ends_s, began_s + LATEST_START_S)
                )
                tried += sent
                if not batch or sent < len(batch):
                    break
        finally:
            channel.close()
        return tried

    def _take(self) -> list[Taken]:
        now = self._services.clock()
        with transaction(self._services.engine) as connection:
            if is_paused(connection, self._target, now):
                return []
            return lease.take(connection, self._target, BATCH, now)


def _send_batch(services: Services, channel: Channel, batch: Sequence[Taken], over: Event, ends_s: float) -> int:
    """How many were dealt with; the others are given back: the time is over, or the target takes nothing."""
    letters = _letters(services, batch)
    done = 0
    while done < len(batch) and monotonic() < ends_s and not over.is_set():
        taken = batch[done]
        done += 1
        if not _deal_with(services, channel, taken, letters.get(taken.delivery_id)):
            over.set()
    if done < len(batch):
        with transaction(services.engine) as connection:
            lease.give_back(connection, batch[done:])
    return done


def _letters(services: Services, batch: Sequence[Taken]) -> dict[int, Letter | Pointless]:
    if not batch or webhook_of(batch[0].target) is not None:
        return {}
    return write_letters(services, batch[0].target, batch)


def _deal_with(services: Services, channel: Channel, taken: Taken, letter: Letter | Pointless | None) -> bool:
    """Whether the target may be sent the next one."""
    if isinstance(letter, Pointless):
        with transaction(services.engine) as connection:
            lease.discard(connection, taken, letter.reason, services.clock())
        return True
    began_s = monotonic()
    failure: DeliveryFailure | None = None
    status: int | None = None
    try:
        status = channel.send(_message(taken, letter))
    except DeliveryFailure as error:
        failure, status = error, error.status
    except Exception as error:  # a message that breaks us must not hold the others up
        log.error("message not sent", delivery_id=taken.delivery_id, target=taken.target, exc_info=error)
        failure = TryAgain(f"{type(error).__name__} on our side")
    crash_point("deliver.after_send")
    attempt = Attempt(round((monotonic() - began_s) * 1000), status, str(failure) if failure else None)
    _record(services, taken, attempt, failure)
    return not isinstance(failure, Unreachable | Gone)


def _record(services: Services, taken: Taken, attempt: Attempt, failure: DeliveryFailure | None) -> None:
    now = services.clock()
    with transaction(services.engine) as connection:
        match failure:
            case None:
                lease.end(connection, taken, "delivered", attempt, now)
            case Gone():
                lease.gone(connection, taken, attempt, now)
            case Refused():
                lease.end(connection, taken, "dead", attempt, now)
            case _:
                lease.retry(connection, taken, attempt, now)
        if isinstance(failure, Unreachable):
            pause(connection, taken.target, now)
        else:
            end_pause(connection, taken.target)
    if failure is not None:
        log.info("message not taken", delivery_id=taken.delivery_id, target=taken.target, error=attempt.error)


def _message(taken: Taken, letter: Letter | None) -> Message:
    return Message(
        message_id=taken.message_id,
        event=taken.event,
        occurred_at=taken.occurred_at,
        user_id=taken.user_id,
        data=taken.payload,
        address=letter.address if letter else "",
        subject=letter.subject if letter else "",
        text=letter.text if letter else "",
    )
