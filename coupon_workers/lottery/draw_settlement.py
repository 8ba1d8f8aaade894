"""Settling draws: drain a lottery's pending draws into PostgreSQL, batch by batch, then take them off the stream.

As claims are settled (``claiming/settlement.py``): safe to run at any time, by anyone, any number of times. A coupon
that was won is issued in the transaction that writes its draw.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, text
from sqlalchemy.exc import DataError, IntegrityError

from coupon_workers.claiming.pending import Poison
from coupon_workers.claiming.settle_sql import set_aside
from coupon_workers.claiming.turn import wait_for_turn
from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.draw_sql import read_books, write_verdicts
from coupon_workers.lottery.draw_verdict import judge
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.lottery import Row, find_lottery, hold_lottery, read_prizes
from coupon_workers.lottery.pending_draw import EndedDraw, PendingDraw, acknowledge, close_bell, read_pending
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import preheat_lottery, settle_draws
from coupon_workers.wallet.wallet_cache import forget_wallets

log = get_logger(__name__)

TURN_S = 5.0
"""As for claims: a drain hands over to a new message after this."""

_TURN = text("SELECT pg_try_advisory_xact_lock(:lock)")


@dataclass
class _Batch:
    """What a committed transaction did. ``winners`` have a new coupon in their wallets."""

    ended: list[EndedDraw] = field(default_factory=list)
    poison: list[Poison] = field(default_factory=list)
    winners: set[str] = field(default_factory=set)
    wrong: bool = False

    def __len__(self) -> int:
        return len(self.ended) + len(self.poison)


def take_turn(connection: Connection, lottery_id: int) -> bool:
    """Have the lottery's settling to this transaction; False while another settling or a preheat has it."""
    return bool(connection.scalar(_TURN, {"lock": lottery_id}))


def drain_draws(services: Services, lottery_id: int, *, turn_s: float = TURN_S) -> int:
    """Settle until nothing is pending, another drain is found at work, or the turn is over.

    Returns the number of entries that left the stream. Raises ``StoreUnavailable``; what was not acknowledged comes
    again.
    """
    keys, settled = LotteryKeys(lottery_id), 0
    turn_ends = time.monotonic() + turn_s
    while not close_bell(services.redis, keys):
        batch = _settle(services, keys)
        if batch is None:
            return settled
        settled += len(batch)
        if time.monotonic() > turn_ends:
            services.post.send(settle_draws(lottery_id))
            return settled
    return settled


def _settle(services: Services, keys: LotteryKeys) -> _Batch | None:
    limit = services.settings.settle_batch
    while True:
        try:
            batch = _write(services, keys, limit)
            break
        except (DataError, IntegrityError) as error:
            # A batch that the database refuses holds a draw it cannot store: settle what stands before it, or it alone.
            log.error("draws refused by the database", lottery_id=keys.lottery_id, count=limit, error=str(error.orig))
            if limit == 1:
                batch = _put_away(services, keys, str(error.orig))
                break
            limit //= 2
    if batch is not None and len(batch):
        _finish(services, keys, batch)
    return batch


def _write(services: Services, keys: LotteryKeys, limit: int) -> _Batch | None:
    with transaction(services.engine) as connection:
        if not take_turn(connection, keys.lottery_id):
            return None
        draws, poison = read_pending(services.redis, keys, limit)
        if draws and find_lottery(connection, keys.lottery_id) is None:
            poison += [_aside(draw, "there is no such lottery") for draw in draws]
            draws = []
        batch = _Batch(poison=poison)
        if draws:
            _settle_draws(connection, keys.lottery_id, draws, batch)
        if poison:
            set_aside(connection, keys.lottery_id, 0, poison)
        return batch


def _settle_draws(connection: Connection, lottery_id: int, draws: Sequence[PendingDraw], batch: _Batch) -> None:
    # Prizes of a lottery stay as they are but for their counts, which nobody else moves in this turn.
    prizes = read_prizes(connection, lottery_id)
    _take_turns(connection, prizes, {draw.prize_no for draw in draws})
    lottery = hold_lottery(connection, lottery_id)
    prizes = read_prizes(connection, lottery_id)
    crash_point("lottery.before_insert")
    verdicts = judge(draws, read_books(connection, lottery, prizes, draws))
    write_verdicts(connection, lottery, prizes, verdicts)
    crash_point("lottery.after_insert")
    batch.ended = [EndedDraw(verdict.draw, verdict.answer) for verdict in verdicts]
    batch.winners = {verdict.draw.user_id for verdict in verdicts if verdict.wins}
    rejected = [verdict.reason for verdict in verdicts if verdict.new and verdict.reason is not None]
    if rejected:
        batch.wrong = True
        log.warning("draws rejected, the gate has lost its memory", lottery_id=lottery_id, count=len(rejected))


def _take_turns(connection: Connection, prizes: Sequence[Row], won: set[int]) -> None:
    """Keep preheats, settling and batches of the templates out, in order of their numbers."""
    for template_id in sorted({p["template_id"] for p in prizes if p["prize_no"] in won and p["template_id"]}):
        if not wait_for_turn(connection, template_id, 0):
            raise StoreUnavailable("PostgreSQL", f"template {template_id} is busy")


def _put_away(services: Services, keys: LotteryKeys, reason: str) -> _Batch | None:
    """The first draw cannot be stored at all: it is kept aside with its bytes, and what follows goes on."""
    with transaction(services.engine) as connection:
        if not take_turn(connection, keys.lottery_id):
            return None
        draws, poison = read_pending(services.redis, keys, 1)
        poison += [_aside(draw, reason) for draw in draws]
        set_aside(connection, keys.lottery_id, 0, poison)
    return _Batch(poison=poison, wrong=True)


def _aside(draw: PendingDraw, reason: str) -> Poison:
    return Poison(draw.entry_id, repr(draw), reason)


def _finish(services: Services, keys: LotteryKeys, batch: _Batch) -> None:
    crash_point("lottery.after_commit")
    if batch.poison:
        log.error("draws set aside", lottery_id=keys.lottery_id, count=len(batch.poison), first=batch.poison[0])
    # Before the acknowledgement: a crash between the two brings the entries back, and this with them.
    forget_wallets(services.redis, batch.winners)
    acknowledge(services.redis, keys, batch.ended, batch.poison, wrong=batch.wrong)
    crash_point("lottery.after_acknowledge")
    if batch.wrong:
        services.post.send(preheat_lottery(keys.lottery_id))
