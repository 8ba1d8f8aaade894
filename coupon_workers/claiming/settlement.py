"""Settling: drain a bucket's pending claims into PostgreSQL, batch by batch, then acknowledge them (DESIGN 6).

Safe to run at any time, by anyone, any number of times: the database's keys let each claim act once, and the
acknowledging script lets only the call that removes an entry give anything back.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from redis.exceptions import RedisError

from coupon_workers.claiming.claim_batch import Batch, write_batch
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import RejectionReason
from coupon_workers.claiming.pending import acknowledge, close_bell
from coupon_workers.claiming.read_ahead import ReadAhead
from coupon_workers.claiming.settle_meter import note_settled
from coupon_workers.claiming.settle_sql import gives_away
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.pace import note_claims
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import preheat_template, settle_claims
from coupon_workers.wallet.wallet_cache import forget_wallets

log = get_logger(__name__)

TURN_S = 5.0
"""A drain hands over to a new message after this, so that shut-downs are short and templates take turns."""

HEAD = ""

GATE_WAS_WRONG = frozenset(
    {
        RejectionReason.DUPLICATE,
        RejectionReason.LIMIT_REACHED,
        RejectionReason.DAILY_LIMIT_REACHED,
        RejectionReason.SOLD_OUT,
    }
)
"""Reasons for which the gate refuses: a claim that was accepted and meets one shows that Redis has lost its memory, or
that a campaign was quicker; the campaign has the gate count its users."""

MENDING_MS = 5_000
"""One rebuild is asked for in this time, however many batches meet the same loss."""


def drain(services: Services, template_id: int, bucket: int, *, turn_s: float = TURN_S) -> int:
    """Settle until nothing is pending, another drain is found at work, or the turn is over.

    Under load, while a full batch is written, the one before it is acknowledged and the one behind it is read: Redis,
    PostgreSQL and this process work at the same time. Returns the number of entries that left the stream. Raises
    ``StoreUnavailable``; what was not acknowledged comes again.
    """
    keys = BucketKeys(template_id, bucket)
    turn_ends = time.monotonic() + turn_s
    if close_bell(services.redis, keys):
        return 0  # an earlier bell's drain took it all: no need to ask the database
    settled, after = 0, HEAD
    acknowledging: Future[None] | None = None
    with ThreadPoolExecutor(2, thread_name_prefix="beside-drain") as beside:
        reading = ReadAhead(services.redis, keys, services.settings.settle_batch, beside)
        while True:
            batch = write_batch(services, keys, after, reading)
            if acknowledging is not None:
                acknowledging.result()
                acknowledging = None
            if batch is None:
                return settled
            settled += len(batch)
            if len(batch) >= services.settings.settle_batch:
                after = batch.span[1]
                acknowledging = beside.submit(_finish, services, keys, batch)
            else:
                after = HEAD
                _finish(services, keys, batch)
                if close_bell(services.redis, keys):
                    return settled
            if time.monotonic() > turn_ends:
                if acknowledging is not None:
                    acknowledging.result()
                services.post.send(settle_claims(template_id, bucket))
                return settled


def settle_batch(services: Services, keys: BucketKeys) -> int | None:
    """Settle the oldest claims of a bucket in one transaction, and acknowledge them.

    Returns how many entries left the stream; 0 when it was empty; None when another settling or a preheat has the
    bucket. Raises ``StoreUnavailable``.
    """
    batch = write_batch(services, keys, HEAD, ReadAhead(services.redis, keys, services.settings.settle_batch))
    if batch is None:
        return None
    _finish(services, keys, batch)
    return len(batch)


def _finish(services: Services, keys: BucketKeys, batch: Batch) -> None:
    if not len(batch):
        return
    crash_point("settle.after_commit")
    note_settled(batch.ended, to_ms(services.clock()))
    if batch.poison:
        log.error("entries set aside", template_id=keys.template_id, count=len(batch.poison), first=batch.poison[0])
    # Before the acknowledgement: a crash between the two brings the entries back, and this with them.
    forget_wallets(services.redis, {end.claim.user_id for end in batch.ended})
    acknowledge(services.redis, keys, batch.ended, batch.span, batch.poison)
    note_claims(services, len(batch))
    crash_point("settle.after_acknowledge")
    wrong = any(end.redrawn is not None or end.reason in GATE_WAS_WRONG for end in batch.ended)
    if wrong and not gives_away(services.engine, keys.template_id):
        _mend_gate(services, keys)


def _mend_gate(services: Services, keys: BucketKeys) -> None:
    """Have the gate rebuilt: what it gives back for rejected claims it would only accept and lose again."""
    try:
        if services.redis.set(keys.mending, "1", px=MENDING_MS, nx=True):
            log.warning("the gate has lost its memory, rebuilding it", template_id=keys.template_id)
            services.post.send(preheat_template(keys.template_id))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
