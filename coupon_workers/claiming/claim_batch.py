"""Writing a batch of pending claims to PostgreSQL in one transaction: the fast way, or the careful one on any doubt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, IntegrityError

from coupon_workers.claiming.issue_sql import Row
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import HELD
from coupon_workers.claiming.pending import EndedClaim, PendingClaim, Poison
from coupon_workers.claiming.read_ahead import ReadAhead
from coupon_workers.claiming.settle_sql import (
    hold_template,
    issue_all,
    lock_template,
    read_books,
    set_aside,
    write_verdicts,
)
from coupon_workers.claiming.verdict import judge, reject_unstorable
from coupon_workers.risk.verdict_log import write_fired
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

UNIQUE_VIOLATION = "23505"
"""SQLSTATE. Once the books have been read, only a claim id that another claim has can still be taken."""


@dataclass(frozen=True, slots=True)
class Batch:
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


def write_batch(services: Services, keys: BucketKeys, after: str, reading: ReadAhead) -> Batch | None:
    """Settle the oldest claims behind the entry ``after`` ("" for the head) in one transaction, and commit.

    None when another settling or a preheat has the bucket. Raises ``StoreUnavailable``.
    """
    limit = services.settings.settle_batch
    write = partial(_write, services, keys, after, reading)
    try:
        try:
            return write(limit, _settle_fast)
        except (_Doubt, IntegrityError):
            return write(limit, _settle_with_care)
    except (DataError, IntegrityError) as error:
        log.error("batch refused by the database", template_id=keys.template_id, error=str(error.orig))
        return _write_some(write, limit)


def _write_some(write: Callable[[int, Way], Batch | None], limit: int) -> Batch | None:
    """A batch that the database refuses holds a claim it cannot store: settle the half before it, or it alone."""
    while limit > 1:
        limit //= 2
        try:
            return write(limit, _settle_with_care)
        except (DataError, IntegrityError):
            continue
    return write(1, _settle_alone)


def _write(services: Services, keys: BucketKeys, after: str, reading: ReadAhead, limit: int, way: Way) -> Batch | None:
    with transaction(services.engine) as connection:
        template = lock_template(connection, keys.template_id, keys.bucket)
        if template is not None and not template["locked"]:
            return None
        entries = reading.read(limit, after)
        claims, poison, span = entries.claims, list(entries.poison), entries.span
        if template is None:
            poison += [Poison(claim.entry_id, repr(claim), "there is no such template") for claim in claims]
        ended: list[EndedClaim] = []
        if claims and template is not None:
            crash_point("settle.before_insert")
            ended, unstorable = way(connection, template, claims)
            poison += unstorable
            write_fired(connection, keys.template_id, claims)
            crash_point("settle.after_insert")
        if poison:
            set_aside(connection, keys.template_id, keys.bucket, poison)
        if not reading.stands():
            raise _Doubt
        return Batch(ended, poison, span)


def _settle_fast(
    connection: Connection, template: Row, claims: Sequence[PendingClaim]
) -> tuple[list[EndedClaim], list[Poison]]:
    stopped = template["status"] in ("paused", "offline", "archived")
    if stopped or any(claim.epoch < template["pause_epoch"] or claim.review_rule for claim in claims):
        raise _Doubt
    if not issue_all(connection, template, claims):
        raise _Doubt
    return [EndedClaim(claim, None, "") for claim in claims], []


def _settle_with_care(
    connection: Connection, template: Row, claims: Sequence[PendingClaim]
) -> tuple[list[EndedClaim], list[Poison]]:
    template = hold_template(connection, template)
    verdicts = judge(claims, read_books(connection, template, claims))
    redrawn = write_verdicts(connection, template, verdicts)
    rejected = [verdict for verdict in verdicts if verdict.new and verdict.reason not in (None, HELD)]
    if rejected:
        log.info("claims rejected", template_id=template["template_id"], count=len(rejected))
    if redrawn:
        log.warning("face values redrawn", template_id=template["template_id"], count=len(redrawn))
    return [EndedClaim(v.claim, v.reason, v.answer, redrawn.get(v.claim.claim_id)) for v in verdicts], []


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
            return _put_away(claim, reason)
    log.error("claim refused by the database", template_id=template["template_id"], claim=claim, error=reason)
    verdict = reject_unstorable(claim)
    try:
        with connection.begin_nested():
            write_verdicts(connection, template, [verdict])
    except (DataError, IntegrityError):
        return _put_away(claim, reason)
    return [EndedClaim(claim, verdict.reason, verdict.answer)], []


def _put_away(claim: PendingClaim, reason: str) -> tuple[list[EndedClaim], list[Poison]]:
    """Not even its rejection can be stored: it is kept aside, and gives back at the gate what it had taken."""
    verdict = reject_unstorable(claim)
    return [EndedClaim(claim, verdict.reason, verdict.answer)], [Poison(claim.entry_id, repr(claim), reason)]
