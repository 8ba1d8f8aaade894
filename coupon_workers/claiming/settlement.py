"""Settling: drain a bucket's pending claims into PostgreSQL, batch by batch, then acknowledge them (DESIGN 6).

Safe to run at any time, by anyone, any number of times: the database's keys let each claim act once, and the
acknowledging script lets only the call that removes an entry give anything back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, IntegrityError

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.pending import (
    EndedClaim,
    PendingClaim,
    Poison,
    acknowledge,
    close_bell,
    read_pending,
)
from coupon_workers.claiming.settle_sql import (
    Row,
    issue_all,
    lock_template,
    read_books,
    set_aside,
    write_verdicts,
)
from coupon_workers.claiming.verdict import judge, reject_unstorable
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import settle_claims
from coupon_workers.wallet.wallet_cache import forget_wallets

log = get_logger(__name__)

TURN_S = 5.0
"""A drain hands over to a new message after this, so that shut-downs are short and templates take turns."""

UNIQUE_VIOLATION = "23505"
"""SQLSTATE. Once the books have been read, only a claim id that another claim has can still be taken."""


def drain(services: Services, template_id: int, bucket: int, *, turn_s: float = TURN_S) -> int:
    """Settle until nothing is pending, another drain is found at work, or the turn is over.

    Returns the number of claims settled. Raises ``StoreUnavailable``; what was not acknowledged comes again.
    """
    keys = BucketKeys(template_id, bucket)
    turn_ends = time.monotonic() + turn_s
    settled = 0
    while True:
        count = settle_batch(services, keys)
        if count is None:
            return settled
        settled += count
        if count == 0 and close_bell(services.redis, keys):
            return settled
        if time.monotonic() > turn_ends:
            services.post.send(settle_claims(template_id, bucket))
            return settled


@dataclass(frozen=True, slots=True)
class _Batch:
    """What a committed transaction did: claims it ended, entries it set aside, and where both lay in the stream."""

    ended: list[EndedClaim]
    poison: list[Poison]
    span: tuple[str, str]

    def __len__(self) -> int:
        return len(self.ended) + len(self.poison)


class _Doubt(Exception):  # noqa: N818 - not an error: it rolls the fast way back, and the careful way is taken
    pass


Way = Callable[[Connection, Row, Sequence[PendingClaim]], tuple[list[EndedClaim], list[Poison]]]
"""Ends claims: those it ended, and those that it could not even reject."""


def settle_batch(services: Services, keys: BucketKeys) -> int | None:
    """Settle the oldest claims of a bucket in one transaction.

    Returns how many entries left the stream; 0 when it was empty; None when another settling or a preheat has the
    bucket. Raises ``StoreUnavailable``.
    """
    limit = services.settings.settle_batch
    try:
        try:
            batch = _write(services, keys, limit, _settle_fast)
        except (_Doubt, IntegrityError):
            batch = _write(services, keys, limit, _settle_with_care)
    except (DataError, IntegrityError) as error:
        log.error("batch refused by the database", template_id=keys.template_id, error=str(error.orig))
        batch = _write_some(services, keys, limit)
    if batch is None:
        return None
    crash_point("settle.after_commit")
    _finish(services, keys, batch)
    crash_point("settle.after_acknowledge")
    return len(batch)


def _write_some(services: Services, keys: BucketKeys, limit: int) -> _Batch | None:
    """A batch that the database refuses holds a claim it cannot store: settle the half before it, or it alone."""
    while limit > 1:
        limit //= 2
        try:
            return _write(services, keys, limit, _settle_with_care)
        except (DataError, IntegrityError):
            continue
    return _write(services, keys, 1, _settle_alone)


def _write(services: Services, keys: BucketKeys, limit: int, way: Way) -> _Batch | None:
    with transaction(services.engine) as connection:
        template = lock_template(connection, keys.template_id, keys.bucket)
        if template is not None and not template["locked"]:
            return None
        claims, poison = read_pending(services.redis, keys, limit)
        span = _span([claim.entry_id for claim in claims] + [entry.entry_id for entry in poison])
        if template is None:
            poison += [Poison(claim.entry_id, repr(claim), "there is no such template") for claim in claims]
        ended: list[EndedClaim] = []
        if claims and template is not None:
            crash_point("settle.before_insert")
            ended, unstorable = way(connection, template, claims)
            poison += unstorable
            crash_point("settle.after_insert")
        if poison:
            set_aside(connection, keys.template_id, keys.bucket, poison)
        return _Batch(ended, poison, span)


def _span(entry_ids: list[str]) -> tuple[str, str]:
    """The first and the last of the entries; empty texts when there are none."""
    return min(entry_ids, key=_position, default=""), max(entry_ids, key=_position, default="")


def _position(entry_id: str) -> tuple[int, int]:
    milliseconds, _, number = entry_id.partition("-")
    return int(milliseconds), int(number)


def _settle_fast(
    connection: Connection, template: Row, claims: Sequence[PendingClaim]
) -> tuple[list[EndedClaim], list[Poison]]:
    stopped = template["status"] in ("paused", "offline", "archived")
    if stopped or any(claim.epoch < template["pause_epoch"] for claim in claims):
        raise _Doubt
    if not issue_all(connection, template, claims):
        raise _Doubt
    return [EndedClaim(claim, None, "") for claim in claims], []


def _settle_with_care(
    connection: Connection, template: Row, claims: Sequence[PendingClaim]
) -> tuple[list[EndedClaim], list[Poison]]:
    verdicts = judge(claims, read_books(connection, template, claims))
    write_verdicts(connection, template, verdicts)
    rejected = [verdict for verdict in verdicts if verdict.new and verdict.reason is not None]
    if rejected:
        log.info("claims rejected", template_id=template["template_id"], count=len(rejected))
    return [EndedClaim(verdict.claim, verdict.reason, verdict.answer) for verdict in verdicts], []


def _settle_alone(
    connection: Connection, template: Row, claims: Sequence[PendingClaim]
) -> tuple[list[EndedClaim], list[Poison]]:
    """One claim, of which the database may refuse the coupon: it is rejected, so that its caller hears of an end.

    Where another claim has its number even that is impossible, and it is left to be set aside.
    """
    (claim,) = claims
    try:
        with connection.begin_nested():
            return _settle_with_care(connection, template, claims)
    except (DataError, IntegrityError) as error:
        reason = str(error.orig)
        if getattr(error.orig, "pgcode", None) == UNIQUE_VIOLATION:
            return [], [Poison(claim.entry_id, repr(claim), reason)]
    log.error("claim refused by the database", template_id=template["template_id"], claim=claim, error=reason)
    verdict = reject_unstorable(claim)
    try:
        with connection.begin_nested():
            write_verdicts(connection, template, [verdict])
    except (DataError, IntegrityError):
        return [], [Poison(claim.entry_id, repr(claim), reason)]
    return [EndedClaim(claim, verdict.reason, verdict.answer)], []


def _finish(services: Services, keys: BucketKeys, batch: _Batch) -> None:
    if batch.poison:
        log.error("entries set aside", template_id=keys.template_id, count=len(batch.poison), first=batch.poison[0])
    if len(batch):
        # Before the acknowledgement: a crash between the two brings the entries back, and this with them.
        forget_wallets(services.redis, {end.claim.user_id for end in batch.ended})
        acknowledge(services.redis, keys, batch.ended, batch.span)
