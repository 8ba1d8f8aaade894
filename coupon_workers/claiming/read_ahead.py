"""Reading the pending stream for a drain: while one full batch is written, the next is read.

A batch that was read ahead was read outside of the turn in which it is written. It counts only if, in that turn, the
stream still holds its last entry: then it is what a reading in the turn would find, but for entries that others have
settled meanwhile, and those the database knows. Otherwise Redis was emptied or rewound, or another drain came between,
and the batch is read anew.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future

import redis

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.pending import Entries, PendingClaim, Poison, is_pending, read_pending
from coupon_workers.runtime.crash_point import crash_point


class ReadAhead:
    """Reads batches of ``full`` entries for one drain; at most one batch lies ahead.

    ``beside`` has the thread that reads ahead; without it every batch is read in its turn.
    """

    def __init__(self, client: redis.Redis, keys: BucketKeys, full: int, beside: Executor | None = None) -> None:
        self._client = client
        self._keys = keys
        self._full = full
        self._beside = beside
        self._after = ""
        self._ahead: Future[Entries] | None = None
        self._unsure: PendingClaim | Poison | None = None

    def read(self, count: int, after: str) -> Entries:
        """The oldest ``count`` entries behind the entry ``after`` ("" for the head), in the bucket's turn.

        A batch that is not full is not followed: what comes meanwhile joins the next one. Raises ``StoreUnavailable``,
        also of what was read ahead.
        """
        entries = self._taken_ahead(count, after)
        self._unsure = entries.last if entries else None
        if entries is None:
            entries = read_pending(self._client, self._keys, count, after)
        if entries.size == count == self._full:
            self._read_behind(entries.span[1])
        return entries

    def stands(self) -> bool:
        """Whether what was read last counts. To be asked in the same turn, before its commit; if not, read again.

        Not asked at once: the batch before is being acknowledged then, and Redis would answer behind that.
        """
        return self._unsure is None or is_pending(self._client, self._keys, self._unsure)

    def _taken_ahead(self, count: int, after: str) -> Entries | None:
        if self._ahead is None or (count, after) != (self._full, self._after):
            return None
        ahead, self._ahead = self._ahead, None
        entries = ahead.result()
        return entries if entries.size == self._full else None

    def _read_behind(self, last: str) -> None:
        if self._beside is None or (self._ahead is not None and self._after == last):
            return  # in the second case the careful way reads the same batch again
        self._after = last
        self._ahead = self._beside.submit(self._read_full, last)

    def _read_full(self, after: str) -> Entries:
        entries = read_pending(self._client, self._keys, self._full, after)
        crash_point("settle.after_read_ahead")
        return entries
