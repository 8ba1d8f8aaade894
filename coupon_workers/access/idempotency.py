"""``Idempotency-Key``: one effect and one stored answer for a request that is sent again (API.md, Idempotency).

A key belongs to the API key that sent it: another caller's answer is never replayed. The request runs between
``begin`` and ``finish``, outside of any transaction of this module. Its row is ``running`` until then, with a deadline
by the database's clock; a row whose deadline has passed (its process died) is taken over by whoever sends the request
again, and the deadline he writes is the fence that keeps the first one's late answer out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from sqlalchemy import ColumnElement, Connection, Engine, and_, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from coupon_workers.runtime.database import transaction
from coupon_workers.schema import Idempotency

RUNNING_S = 60
"""Longer than any request takes: a statement ends after 15 s (settings), and a request makes a few."""

TRIES = 3
"""Between two statements a row may be finished with or removed by another; a third look has always sufficed."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to run the request and to store its answer, for as long as nobody has taken it over.

    ``subject_id`` is the identity of what the request makes, if it makes anything: the same for whoever takes over.
    """

    key_id: str
    idempotency_key: str
    deadline: datetime
    subject_id: int


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What was answered: the status, the body as text and its content type."""

    status: int
    body: str
    content_type: str


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The key was used for another request: another method, path or body."""


@dataclass(frozen=True, slots=True)
class InProgress:
    """The first of these requests is still running; ``retry_after_s`` whole seconds at most."""

    retry_after_s: int


Beginning = Fence | StoredAnswer | Mismatch | InProgress


def begin(engine: Engine, *, key_id: str, idempotency_key: str, fingerprint: bytes, subject_id: int) -> Beginning:
    """Ask to run a request. Of concurrent callers exactly one is given the fence.

    ``fingerprint`` stands for method, path and body, ``subject_id`` is a fresh identity. Raises
    ``StoreUnavailable``: nothing may be run.
    """
    with transaction(engine) as connection:
        for _ in range(TRIES):
            beginning = _try_to_begin(connection, key_id, idempotency_key, fingerprint, subject_id)
            if beginning is not None:
                return beginning
    return InProgress(1)


def finish(engine: Engine, fence: Fence, answer: StoredAnswer) -> bool:
    """Store the answer for whoever asks again; False when the request was taken over meanwhile.

    Raises ``StoreUnavailable``.
    """
    done = update(Idempotency).where(_held_by(fence))
    with transaction(engine) as connection:
        result = connection.execute(
            done.values(
                state="done",
                response_status=answer.status,
                response_body=answer.body,
                response_type=answer.content_type,
            )
        )
    return result.rowcount == 1


def abandon(engine: Engine, fence: Fence) -> None:
    """Forget the request, so that the next one like it runs: this one failed and is to be tried again.

    Raises ``StoreUnavailable``; the deadline then frees the key.
    """
    with transaction(engine) as connection:
        connection.execute(delete(Idempotency).where(_held_by(fence)))


def _try_to_begin(
    connection: Connection, key_id: str, idempotency_key: str, fingerprint: bytes, subject_id: int
) -> Beginning | None:
    # clock_timestamp: now() is the beginning of the transaction, which may lie before a wait for another's row.
    deadline = func.clock_timestamp() + timedelta(seconds=RUNNING_S)
    mine = insert(Idempotency).values(
        key_id=key_id,
        idempotency_key=idempotency_key,
        fingerprint=fingerprint,
        state="running",
        deadline=deadline,
        subject_id=subject_id,
    )
    taken = connection.execute(
        mine.on_conflict_do_update(
            index_elements=[Idempotency.key_id, Idempotency.idempotency_key],
            set_={"deadline": deadline},
            where=and_(
                Idempotency.state == "running",
                Idempotency.deadline <= func.clock_timestamp(),
                Idempotency.fingerprint == mine.excluded.fingerprint,
            ),
        ).returning(Idempotency.deadline, Idempotency.subject_id)
    ).first()
    if taken is not None:
        return Fence(key_id, idempotency_key, *taken)
    return _what_is_there(connection, key_id, idempotency_key, fingerprint)


def _what_is_there(connection: Connection, key_id: str, idempotency_key: str, fingerprint: bytes) -> Beginning | None:
    row = connection.execute(
        select(
            Idempotency.fingerprint,
            Idempotency.state,
            Idempotency.response_status,
            Idempotency.response_body,
            Idempotency.response_type,
            func.extract("epoch", Idempotency.deadline - func.clock_timestamp()).label("left_s"),
        ).where(Idempotency.key_id == key_id, Idempotency.idempotency_key == idempotency_key)
    ).one_or_none()
    if row is None:
        return None
    if row.fingerprint != fingerprint:
        return Mismatch()
    if row.state == "done":
        return StoredAnswer(row.response_status, row.response_body, row.response_type)
    return InProgress(max(1, min(RUNNING_S, ceil(row.left_s)))) if row.left_s > 0 else None


def _held_by(fence: Fence) -> ColumnElement[bool]:
    return and_(
        Idempotency.key_id == fence.key_id,
        Idempotency.idempotency_key == fence.idempotency_key,
        Idempotency.state == "running",
        Idempotency.deadline == fence.deadline,
    )
