"""The pending stream: the record of accepted claims that are not settled. The Dramatiq message is only the bell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import redis

from coupon_workers.claiming.claim_request import REQUEST_ID_LENGTH, USER_ID_LENGTH
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import HELD
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.redis_client import ask_raw

MAX_ID = 2**63 - 1
MAX_MS = 32_503_680_000_000
"""The year 3000: no template is open then, and a validity counted from there still lies within the calendar."""

BELL_TTL_MS = 60_000
"""How long a bell counts as rung: longer than bells queue up behind one another at a peak, or each claim would add to
the queue. A bell that was lost is missed much sooner, by the sweep, which looks at how long claims have waited."""


class PendingClaim(NamedTuple):
    """One accepted claim. ``day`` is the number of the local day as text, "" when the template has no daily limit.

    ``face_value`` is what it drew from the pool of a template of random amounts, in minor units. ``fired`` are rules of
    the risk policy (``lua/part/weigh_risk.lua``), with what the claim came from; "" where none fired.
    """

    entry_id: str
    claim_id: int
    user_id: str
    request_id: str
    claim_seq: int
    claimed_at_ms: int
    day: str
    epoch: int
    channel: str | None
    face_value: int | None = None
    fired: str = ""
    device_id: str = ""
    ip: str = ""
    address_hash: str = ""

    @property
    def review_rule(self) -> str | None:
        """The rule for which it is to be held, or None."""
        holds = (word.partition(" ")[2] for word in self.fired.split(",") if word.startswith("review "))
        return next(holds, None)

    @property
    def request(self) -> str:
        """The field of this claim in the ``requests`` hash."""
        return f"{self.user_id} {self.request_id}"


class Poison(NamedTuple):
    """An entry that no claim can be read from."""

    entry_id: str
    payload: str
    reason: str


class EndedClaim(NamedTuple):
    """A claim the database has settled. ``reason`` None: it was issued; "held": it is, for review. ``answer`` is what
    its request is answered with from now on: "<claim id> <state>", of the first claim when this one is a duplicate.
    ``redrawn``: what the database has drawn for it, as what it drew at the gate was gone."""

    claim: PendingClaim
    reason: str | None
    answer: str
    redrawn: int | None = None


class Entries(NamedTuple):
    """Entries as they were read: claims, and what is none, each in the order of the stream."""

    claims: list[PendingClaim]
    poison: list[Poison]

    @property
    def size(self) -> int:
        """How many."""
        return len(self.claims) + len(self.poison)

    @property
    def last(self) -> PendingClaim | Poison:
        """The newest; there must be one."""
        newest: list[PendingClaim | Poison] = [*self.claims[-1:], *self.poison[-1:]]
        return max(newest, key=_position)

    @property
    def span(self) -> tuple[str, str]:
        """The ids of the first and the last; empty texts when there are none."""
        if not self.size:
            return "", ""
        oldest: list[PendingClaim | Poison] = [*self.claims[:1], *self.poison[:1]]
        return min(oldest, key=_position).entry_id, self.last.entry_id


def _position(entry: PendingClaim | Poison) -> tuple[int, int]:
    milliseconds, _, number = entry.entry_id.partition("-")
    return int(milliseconds), int(number)


def read_pending(client: redis.Redis, keys: BucketKeys, count: int, after: str = "") -> Entries:
    """The oldest ``count`` entries behind the entry ``after``, whoever may have read them before.

    Raises ``StoreUnavailable``.
    """
    return _read(client, keys, f"({after}" if after else "-", "+", count)


def is_pending(client: redis.Redis, keys: BucketKeys, entry: PendingClaim | Poison) -> bool:
    """Whether the stream still holds this very entry. Raises ``StoreUnavailable``."""
    claims, poison = _read(client, keys, entry.entry_id, entry.entry_id, 1)
    return [entry] == [*claims, *poison]


def _read(client: redis.Redis, keys: BucketKeys, first: str, last: str, count: int) -> Entries:
    entries = Entries([], [])
    for entry_id, fields in ask_raw(client, "XRANGE", keys.pending, first, last, "COUNT", count):
        try:
            entries.claims.append(_parse(entry_id, fields))
        except ValueError as error:
            entries.poison.append(Poison(entry_id.decode(), repr(fields)[:10_000], str(error)))
    return entries


_FIELDS = [b"c", b"u", b"r", b"s", b"t", b"d", b"e", b"h"]
_WITH_VALUE = [*_FIELDS, b"v"]
_RISK = [b"k", b"i", b"p", b"a"]
_SHAPES = (_FIELDS, _WITH_VALUE, [*_FIELDS, *_RISK], [*_WITH_VALUE, *_RISK])


def _parse(entry_id: bytes, fields: list[bytes]) -> PendingClaim:
    names = fields[0::2]
    if names not in _SHAPES:
        raise ValueError("the fields are not those of a claim")
    claim_id, user, request, seq, claimed_ms, day, epoch, channel = fields[1:16:2]
    face_value = fields[17] if len(names) in (9, 13) else b""
    risk = fields[-7::2] if len(names) > 9 else ()
    claim = PendingClaim(
        entry_id.decode(),
        int(claim_id),
        user.decode(),
        request.decode(),
        int(seq),
        int(claimed_ms),
        day.decode(),
        int(epoch),
        channel.decode() or None,
        int(face_value) if face_value else None,
        *(part.decode() for part in risk),
    )
    if not 0 <= (claim.face_value or 0) <= MAX_ID:
        raise ValueError("a number is out of range")
    if not (0 < claim.claim_id <= MAX_ID and 0 < claim.claim_seq <= MAX_ID and 0 < claim.claimed_at_ms < MAX_MS):
        raise ValueError("a number is out of range")
    if not user or b" " in user or b"\x00" in user or b"\x00" in request + channel + b"".join(risk):
        raise ValueError("a text cannot be stored")
    if len(claim.user_id) > USER_ID_LENGTH or len(claim.request_id) > REQUEST_ID_LENGTH:
        raise ValueError("a text is too long for an index")
    return claim


def acknowledge(
    client: redis.Redis,
    keys: BucketKeys,
    ended: Sequence[EndedClaim],
    span: tuple[str, str],
    aside: Sequence[Poison] = (),
) -> int:
    """Take a batch off the stream, the entries of ``span`` from the first to the last, and write down how it ended.

    ``aside`` are the entries of it that were set aside. Returns how many rejected claims gave stock,
    allowance and face value back by this call. Raises ``StoreUnavailable``: what is still there comes again.
    """
    issued = [end.claim for end in ended if end.reason is None]
    held = [end.claim for end in ended if end.reason == HELD]
    rejected = [end for end in ended if end.reason not in (None, HELD)]
    redrawn = [(end.claim.claim_id, end.redrawn) for end in ended if end.redrawn is not None]
    args: list[str | int] = [span[0], _after(span[1]), len(issued), len(rejected), len(redrawn), len(held)]
    for claim in issued:
        args += (claim.claim_id, claim.request)
    for end in rejected:
        value = "" if end.claim.face_value is None else end.claim.face_value
        args += (end.claim.claim_id, end.claim.request, end.claim.day, end.answer, value)
    for claim_id, value in redrawn:
        args += (claim_id, value)
    for claim in held:
        args += (claim.claim_id, claim.request)
    args += [entry.entry_id for entry in aside]
    names = [keys.stock, keys.takers, keys.requests, keys.claims, keys.pending, keys.day_prefix, keys.pool, keys.meta]
    return int(lua_script("acknowledge_claims")(client, names, args))


def _after(entry_id: str) -> str:
    milliseconds, _, number = entry_id.partition("-")
    return f"{milliseconds}-{int(number) + 1}"


def close_bell(client: redis.Redis, keys: BucketKeys) -> bool:
    """End the drain when nothing is pending; False when there is more to do. Raises ``StoreUnavailable``."""
    return bool(lua_script("close_bell")(client, [keys.pending, keys.bell], [BELL_TTL_MS]) == b"CLOSED")
