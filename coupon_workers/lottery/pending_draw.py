"""The pending stream of a lottery: the record of accepted draws that are not settled. The message is only the bell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import redis

from coupon_workers.claiming.claim_request import REQUEST_ID_LENGTH, USER_ID_LENGTH
from coupon_workers.claiming.pending import BELL_TTL_MS, MAX_ID, MAX_MS, Poison
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.redis_client import ask_raw

_FIELDS = [b"c", b"u", b"r", b"p", b"t", b"d"]
_MOST_PRIZES = 32_767
"""What the column of a prize's number holds."""


class PendingDraw(NamedTuple):
    """One accepted draw. ``day`` is the number of the local day as text, "" when there is no daily limit."""

    entry_id: str
    draw_id: int
    user_id: str
    request_id: str
    prize_no: int
    drawn_at_ms: int
    day: str

    @property
    def request(self) -> str:
        """The field of this draw in the ``requests`` hash."""
        return f"{self.user_id} {self.request_id}"


class EndedDraw(NamedTuple):
    """A draw the database has settled, and what its request is answered with: "<draw id> <prize no> <state>"."""

    draw: PendingDraw
    answer: str


def read_pending(client: redis.Redis, keys: LotteryKeys, count: int) -> tuple[list[PendingDraw], list[Poison]]:
    """The oldest ``count`` entries. Raises ``StoreUnavailable``."""
    draws: list[PendingDraw] = []
    poison: list[Poison] = []
    for entry_id, fields in ask_raw(client, "XRANGE", keys.pending, "-", "+", "COUNT", count):
        try:
            draws.append(_parse(entry_id, fields))
        except ValueError as error:
            poison.append(Poison(entry_id.decode(), repr(fields)[:10_000], str(error)))
    return draws, poison


def _parse(entry_id: bytes, fields: list[bytes]) -> PendingDraw:
    if fields[0::2] != _FIELDS:
        raise ValueError("the fields are not those of a draw")
    draw_id, user, request, prize_no, drawn_ms, day = fields[1::2]
    texts = (user.decode(), request.decode())
    draw = PendingDraw(entry_id.decode(), int(draw_id), *texts, int(prize_no), int(drawn_ms), day.decode())
    if not (0 < draw.draw_id <= MAX_ID and 0 <= draw.prize_no <= _MOST_PRIZES and 0 < draw.drawn_at_ms < MAX_MS):
        raise ValueError("a number is out of range")
    if not user or b" " in user or b"\x00" in user or b"\x00" in request:
        raise ValueError("a text cannot be stored")
    if len(draw.user_id) > USER_ID_LENGTH or len(draw.request_id) > REQUEST_ID_LENGTH:
        raise ValueError("a text is too long for an index")
    return draw


def acknowledge(
    client: redis.Redis, keys: LotteryKeys, ended: Sequence[EndedDraw], aside: Sequence[Poison], *, wrong: bool
) -> int:
    """Take settled draws and entries set aside off the stream, and write down how they ended.

    ``wrong``: the gate let through what the books refuse, and is cold from now on. Returns how many entries this call
    took off. Raises ``StoreUnavailable``: what is still there comes again.
    """
    args: list[str | int] = ["1" if wrong else ""]
    for end in ended:
        args += (end.draw.entry_id, end.draw.draw_id, end.draw.request, end.answer)
    taken = int(lua_script("acknowledge_draws")(client, [keys.requests, keys.pending, keys.generation], args))
    for entry in aside:  # kept with their bytes by now: nothing would be lost with them
        ask_raw(client, "XDEL", keys.pending, entry.entry_id)
    return taken + len(aside)


def close_bell(client: redis.Redis, keys: LotteryKeys) -> bool:
    """End the drain when nothing is pending; False when there is more to do. Raises ``StoreUnavailable``."""
    return bool(lua_script("close_bell")(client, [keys.pending, keys.bell], [BELL_TTL_MS]) == b"CLOSED")
