"""A template as the claim centre lists it: what is the same for every user, as it goes to Redis and comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from coupon_workers.claiming.gate_words import GateWords
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.clock import rfc3339

Row = dict[str, Any]

_INSTANTS = ("claim_start", "claim_end")


@dataclass(frozen=True, slots=True, eq=False)
class ListedTemplate:
    """``row``: its columns. ``first``: how the gate of its first bucket is asked, packed once for all users."""

    template_id: int
    row: Row
    channels: frozenset[str]
    first: GateWords

    def is_on(self, channel: str | None, now: datetime) -> bool:
        """Whether it is shown on the channel at this moment."""
        return bool(now < self.row["claim_end"]) and (channel is None or not self.channels or channel in self.channels)

    def words_of(self, bucket: int) -> GateWords:
        """How the gate of a bucket is asked."""
        return self.first if bucket == 0 else GateWords.of(BucketKeys(self.template_id, bucket))

    @property
    def counts_days(self) -> bool:
        """Whether a user's day is counted."""
        return self.row["per_user_daily_limit"] is not None


def listed(row: Row) -> ListedTemplate:
    """The template of a row of the database."""
    template_id = row["template_id"]
    return ListedTemplate(template_id, row, frozenset(row["channels_claim"]), GateWords.of(BucketKeys(template_id)))


def list_as_json(rows: Sequence[Row], *, is_whole: bool) -> bytes:
    """What ``list_of`` reads."""
    told = [row | {name: rfc3339(row[name]) for name in _INSTANTS} for row in rows]
    return json.dumps({"is_whole": is_whole, "rows": told}).encode()


def list_of(page: bytes, known: Mapping[int, ListedTemplate]) -> tuple[tuple[ListedTemplate, ...], bool]:
    """The templates of a kept list, and whether it is the whole of it. Those that are as ``known``, by their id, are
    the same objects: what was made of them holds."""
    told = json.loads(page)
    rows = [row | {name: datetime.fromisoformat(row[name]) for name in _INSTANTS} for row in told["rows"]]
    return tuple(_known_or_listed(row, known.get(row["template_id"])) for row in rows), told["is_whole"]


def _known_or_listed(row: Row, known: ListedTemplate | None) -> ListedTemplate:
    return known if known is not None and known.row == row else listed(row)
