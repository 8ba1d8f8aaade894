"""A template as the claim centre lists it: what is the same for every user, as it goes to Redis and comes back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from coupon_workers.claiming.key import BucketKeys, bucket_of
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.lean_redis import pack
from coupon_workers.templates.local_day import local_day_number

Row = dict[str, Any]

_INSTANTS = ("claim_start", "claim_end")


class UserWord:
    """A user, and the last word of every question about him, as it goes over the wire."""

    __slots__ = ("packed", "user_id")

    def __init__(self, user_id: str) -> None:
        self.user_id = user_id
        self.packed = _word(user_id)


@dataclass(frozen=True, slots=True, eq=False)
class ListedTemplate:
    """``row``: its columns. Of its first bucket ``ask_stock`` is the question for generation and stock, and
    ``ask_taker`` the beginning of the one for a user's count: packed once for all users."""

    template_id: int
    row: Row
    channels: frozenset[str]
    ask_stock: bytes
    ask_taker: bytes

    def is_on(self, channel: str | None, now: datetime) -> bool:
        """Whether it is shown on the channel at this moment."""
        return bool(now < self.row["claim_end"]) and (channel is None or not self.channels or channel in self.channels)

    def questions(self, user: UserWord, now: datetime) -> list[bytes]:
        """What the gate is asked: generation and stock, the user's count, and the count of his day where it matters."""
        if self.row["bucket_count"] == 1:
            asked = [self.ask_stock, self.ask_taker + user.packed]
        else:
            keys = self._keys_of(user)
            asked = [_ask_stock(keys), _ask_taker(keys) + user.packed]
        if self.counts_days:
            day = f"{self._keys_of(user).day_prefix}{local_day_number(now, self.row['timezone'])}"
            asked.append(pack("HGET", day, user.user_id))
        return asked

    def _keys_of(self, user: UserWord) -> BucketKeys:
        return BucketKeys(self.template_id, bucket_of(user.user_id, self.row["bucket_count"]))

    @property
    def counts_days(self) -> bool:
        """Whether a user's day is counted."""
        return self.row["per_user_daily_limit"] is not None


def listed(row: Row) -> ListedTemplate:
    """The template of a row of the database."""
    template_id = row["template_id"]
    keys = BucketKeys(template_id)
    return ListedTemplate(template_id, row, frozenset(row["channels_claim"]), _ask_stock(keys), _ask_taker(keys))


def list_as_json(rows: Sequence[Row], *, is_whole: bool) -> bytes:
    """What ``list_of`` reads."""
    told = [row | {name: rfc3339(row[name]) for name in _INSTANTS} for row in rows]
    return json.dumps({"is_whole": is_whole, "rows": told}).encode()


def list_of(page: bytes) -> tuple[tuple[ListedTemplate, ...], bool]:
    """The templates of a kept list, and whether it is the whole of it."""
    told = json.loads(page)
    rows = [row | {name: datetime.fromisoformat(row[name]) for name in _INSTANTS} for row in told["rows"]]
    return tuple(listed(row) for row in rows), told["is_whole"]


def _ask_stock(keys: BucketKeys) -> bytes:
    return pack("MGET", keys.generation, keys.stock)


def _ask_taker(keys: BucketKeys) -> bytes:
    """``HGET`` of the takers, but for its last word."""
    return b"*3\r\n" + _word("HGET") + _word(keys.takers)


def _word(text: str) -> bytes:
    raw = text.encode()
    return b"$%d\r\n%b\r\n" % (len(raw), raw)
