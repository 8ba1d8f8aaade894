"""Deliveries in hand: taken for a while, given back, ended. The sending itself happens outside of any transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.notify.backoff import wait_after
from coupon_workers.notify.webhook import disable, hold_webhook

LEASE_S = 60
"""By the database's clock. A worker that is killed holds its deliveries up for this long, and no longer."""

LONGEST_ERROR = 500

# A delivery waits for an earlier one of the same coupon. One that another has just taken is seen as such when its row
# is locked, and skipped.
_TAKE = text("""
    UPDATE delivery SET leased_until = clock_timestamp() + :lease_s * interval '1 second'
     WHERE delivery_id IN (
        SELECT delivery_id FROM delivery AS d
         WHERE target = :target AND state = 'pending' AND next_attempt_at <= :now
           AND coalesce(leased_until, '-infinity') <= clock_timestamp()
           AND NOT EXISTS (SELECT FROM delivery AS earlier
                            WHERE earlier.target = d.target AND earlier.coupon_id = d.coupon_id
                              AND earlier.outbox_id < d.outbox_id AND earlier.state = 'pending')
         ORDER BY next_attempt_at, outbox_id LIMIT :most FOR UPDATE SKIP LOCKED)
    RETURNING delivery_id, target, webhook_id, event, user_id, payload, attempts, step, occurred_at, created_at,
              leased_until, outbox_id
""")

_HELD = "delivery_id = :delivery_id AND state = 'pending' AND leased_until = :leased_until"

_NOTE = text("""
    INSERT INTO delivery_attempt (delivery_id, attempt_no, at, elapsed_ms, status, error)
    VALUES (:delivery_id, :attempt_no, :now, :elapsed_ms, :status, :error)
""")


@dataclass(frozen=True, slots=True)
class Taken:
    """A delivery in hand until ``leased_until``, which is the fence: whoever took it later has another."""

    delivery_id: int
    target: str
    webhook_id: int | None
    event: str
    user_id: str
    payload: dict[str, object]
    attempts: int
    step: int
    occurred_at: datetime
    created_at: datetime
    leased_until: datetime

    @property
    def message_id(self) -> str:
        """The same at each attempt and replay. With the instant in it no later delivery has it, though the database
        were restored from a backup and gave the number out again."""
        return message_id(self.delivery_id, self.created_at)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of sending: ``error`` None when it was taken, ``status`` of the answer if there was one."""

    elapsed_ms: int
    status: int | None
    error: str | None


def message_id(delivery_id: int, created_at: datetime) -> str:
    """The id of the message that a delivery sends."""
    return f"msg_{delivery_id}_{int(created_at.timestamp())}"


def take(connection: Connection, target: str, most: int, now: datetime) -> list[Taken]:
    """Up to ``most`` that are due at ``now``, in the order in which they are to be sent."""
    rows: Sequence[Any] = connection.execute(
        _TAKE, {"target": target, "most": most, "now": now, "lease_s": LEASE_S}
    ).all()
    names = tuple(Taken.__slots__)
    ordered = sorted(rows, key=lambda row: row.outbox_id)
    return [Taken(**{name: getattr(row, name) for name in names}) for row in ordered]


def give_back(connection: Connection, taken: Sequence[Taken]) -> None:
    """Let go of what was not sent after all."""
    if taken:
        statement = text(f"UPDATE delivery SET leased_until = NULL WHERE {_HELD}")
        connection.execute(statement, [_key(delivery) for delivery in taken])


def end(connection: Connection, taken: Taken, state: str, attempt: Attempt, now: datetime) -> None:
    """It is ``delivered``, or ``dead``."""
    _write(connection, taken, attempt, now, "state = :state, finished_at = :now, leased_until = NULL", state=state)


def retry(connection: Connection, taken: Taken, attempt: Attempt, now: datetime) -> None:
    """It comes again by the schedule, or is dead when the schedule is at its end."""
    wait = wait_after(taken.step + 1)
    if wait is None:
        end(connection, taken, "dead", attempt, now)
        return
    _write(connection, taken, attempt, now, "next_attempt_at = :next_at, leased_until = NULL", next_at=now + wait)


def discard(connection: Connection, taken: Taken, reason: str, now: datetime) -> None:
    """There is no point in sending it; ``reason`` says why. No attempt was made."""
    statement = text(
        "UPDATE delivery SET state = 'discarded', finished_at = :now, leased_until = NULL, last_error = :reason"
        f" WHERE {_HELD}"
    )
    connection.execute(statement, _key(taken) | {"reason": reason, "now": now})


def gone(connection: Connection, taken: Taken, attempt: Attempt, now: datetime) -> None:
    """The target wants nothing any more: this and all others to it are discarded."""
    # The webhook's row first, as everybody does who changes both.
    hold_webhook(connection, taken.webhook_id)
    end(connection, taken, "discarded", attempt, now)
    if taken.webhook_id is not None:
        disable(connection, taken.webhook_id, "the endpoint answered 410 Gone", now)


def _write(connection: Connection, taken: Taken, attempt: Attempt, now: datetime, change: str, **named: object) -> None:
    error = attempt.error[:LONGEST_ERROR].replace("\x00", "") if attempt.error else None
    values = {**_key(taken), "now": now, "status": attempt.status, "error": error, **named}
    moved = connection.execute(
        text(
            f"UPDATE delivery SET attempts = attempts + 1, step = step + 1, last_status = :status, last_error = :error,"
            f" {change} WHERE {_HELD}"
        ),
        values,
    )
    if moved.rowcount:  # else somebody took it over, or ended it, and writes its own
        connection.execute(_NOTE, values | {"attempt_no": taken.attempts + 1, "elapsed_ms": attempt.elapsed_ms})


def _key(taken: Taken) -> dict[str, object]:
    return {"delivery_id": taken.delivery_id, "leased_until": taken.leased_until}
