"""What an operator does with dead letters, written down.

The broker knows no transactions with PostgreSQL: the row is written first and committed last, so that nothing is done
that cannot be written down, and nothing is written that was refused. A process that dies between the two has done it
without a row.
"""

from __future__ import annotations

import redis
from sqlalchemy import Engine

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.dead_letter import discard_dead_letter, replay_dead_letter


def replay(engine: Engine, client: redis.Redis, message_id: str) -> None:
    """Send a dead letter to its queue again. Raises what ``replay_dead_letter`` raises, and ``StoreUnavailable``."""
    with transaction(engine) as connection:
        record(connection, AuditAction.DEAD_LETTER_REPLAY, f"dead_letter:{message_id}")
        replay_dead_letter(client, message_id)


def discard(engine: Engine, client: redis.Redis, message_id: str) -> None:
    """Throw a dead letter away. Raises what ``discard_dead_letter`` raises, and ``StoreUnavailable``."""
    with transaction(engine) as connection:
        record(connection, AuditAction.DEAD_LETTER_DISCARD, f"dead_letter:{message_id}")
        discard_dead_letter(client, message_id)
