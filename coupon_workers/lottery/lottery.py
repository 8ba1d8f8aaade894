"""A lottery (DESIGN 11): its states, its row and those of its prizes.

::

    pending_approval ── approve ──▶ open ◀── pause, resume ──▶ paused
    any of them ── end, or the end of its time ──▶ ending ── nothing waits ──▶ ended
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.errors import Conflict, NotFound

Row = Mapping[str, Any]


class LotteryStatus(StrEnum):
    """Where a lottery is. ``scheduled`` and ``active`` are stored as ``open``: the clock tells which.

    ``ending``: nobody draws any more, and draws that wait are settled; ``ended``: what was left has gone back.
    """

    PENDING_APPROVAL = "pending_approval"
    SCHEDULED = "scheduled"
    ACTIVE = "active"
    PAUSED = "paused"
    ENDING = "ending"
    ENDED = "ended"


OVER = frozenset({LotteryStatus.ENDING, LotteryStatus.ENDED})

_LOTTERY = "SELECT * FROM lottery WHERE lottery_id = :lottery_id"
_READ = text(_LOTTERY)
_HOLD = text(f"{_LOTTERY} FOR NO KEY UPDATE")
_PRIZES = text(
    "SELECT * FROM prize WHERE lottery_id = ANY(CAST(:lottery_ids AS bigint[])) ORDER BY lottery_id, prize_no"
)


def status_now(lottery: Row, now: datetime) -> LotteryStatus:
    """What a row of ``lottery`` is at ``now``."""
    stored = lottery["status"]
    if stored != LotteryStatus.ENDED and now >= lottery["end_at"]:
        return LotteryStatus.ENDING
    if stored != "open":
        return LotteryStatus(stored)
    return LotteryStatus.SCHEDULED if now < lottery["start_at"] else LotteryStatus.ACTIVE


def find_lottery(connection: Connection, lottery_id: int) -> Row | None:
    """The row; None when there is none."""
    found = connection.execute(_READ, {"lottery_id": lottery_id}).mappings().first()
    return None if found is None else dict(found)


def read_lottery(connection: Connection, lottery_id: int) -> Row:
    """The row. Raises ``NotFound`` ``LOTTERY_NOT_FOUND``."""
    return _there(find_lottery(connection, lottery_id))


def hold_lottery(connection: Connection, lottery_id: int) -> Row:
    """The row, held until the transaction ends. Raises ``NotFound`` ``LOTTERY_NOT_FOUND``."""
    found = connection.execute(_HOLD, {"lottery_id": lottery_id}).mappings().first()
    return _there(None if found is None else dict(found))


def read_prizes(connection: Connection, *lottery_ids: int) -> list[Row]:
    """The prizes of the lotteries, in order."""
    return [dict(row) for row in connection.execute(_PRIZES, {"lottery_ids": list(lottery_ids)}).mappings()]


def wrong_status(lottery: Row, now: datetime, what: str) -> Conflict:
    """The refusal of what cannot be done with the lottery as it is."""
    status = status_now(lottery, now)
    return Conflict("INVALID_STATUS", f"a lottery that is {status} {what}", current_status=status.value)


def _there(found: Row | None) -> Row:
    if found is None:
        raise NotFound("LOTTERY_NOT_FOUND", "there is no such lottery")
    return found
