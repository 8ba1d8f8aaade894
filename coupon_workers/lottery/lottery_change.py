"""A change of a lottery while nobody draws: its name, and its prizes' weights and stock.

Odds never change under somebody's hand: a lottery that runs is paused first. Units are set aside for more coupons, and
given back for fewer. Where stock changes the gate is cold from before the count of what waits until it is rebuilt, so
that no draw falls between the two; without Redis nothing is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from redis.exceptions import RedisError
from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.campaigns.batch_control import tell_gate as tell_template_gate
from coupon_workers.claiming.turn import wait_for_turn
from coupon_workers.errors import Busy, Conflict, CouponWorkersError, InvalidInput, StoreUnavailable
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.lottery import LotteryStatus, Row, hold_lottery, read_prizes, status_now, wrong_status
from coupon_workers.lottery.lottery_preheat import preheat_if_redis_answers
from coupon_workers.lottery.lottery_rules import tell_gate
from coupon_workers.lottery.odds import weights_problem
from coupon_workers.lottery.pending_draw import read_pending
from coupon_workers.lottery.prize_units import move_units
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

CHANGES = frozenset({LotteryStatus.PENDING_APPROVAL, LotteryStatus.SCHEDULED, LotteryStatus.PAUSED})
"""While nobody draws."""

_MOST_PENDING = 10_000_000
"""More than the stream may hold."""

_KNOWN = text("SELECT draw_id FROM draw WHERE lottery_id = :lottery_id AND draw_id = ANY(CAST(:draw_ids AS bigint[]))")
_LOTTERY = text(
    "UPDATE lottery SET name = :name, version = version + 1, updated_at = :now WHERE lottery_id = :lottery_id"
)
_PRIZE = text(
    """
    UPDATE prize p SET weight = c.weight, stock = c.stock, left_quantity = c.stock - p.drawn_count
      FROM unnest(CAST(:prize_nos AS smallint[]), CAST(:weights AS int[]), CAST(:stocks AS bigint[]))
        AS c(prize_no, weight, stock)
     WHERE p.lottery_id = :lottery_id AND p.prize_no = c.prize_no
    """
)


@dataclass(frozen=True, slots=True)
class PrizeChange:
    """A prize as it is to be; None: as it is."""

    prize_no: int
    weight: int | None = None
    stock: int | None = None


@dataclass(frozen=True, slots=True)
class LotteryChange:
    """``version`` is that of the lottery that was looked at. ``name`` None, prizes left out: as they are."""

    version: int
    name: str | None = None
    prizes: tuple[PrizeChange, ...] = ()


def change_lottery(services: Services, lottery_id: int, change: LotteryChange) -> None:
    """Change it as a whole or not at all; safe to run again.

    Raises ``NotFound`` ``LOTTERY_NOT_FOUND``; ``InvalidInput`` for prizes that are not there and weights that do not
    sum to a million; ``Conflict`` ``INVALID_STATUS``, ``LOTTERY_CHANGED`` with ``version``, ``BELOW_DRAWN`` with
    ``prize_no`` and ``drawn``, ``LOTTERY_BUSY``, and those of new units (``prize_units.py``); ``StoreUnavailable``.
    """
    keys, stock_changes = LotteryKeys(lottery_id), False
    moved: list[int] = []
    try:
        with transaction(services.engine) as connection:
            # Neither a settling nor a preheat meanwhile.
            if not wait_for_turn(connection, lottery_id, 0):
                raise Busy("LOTTERY_BUSY", "draws are being settled at this moment; ask again")
            lottery, now = hold_lottery(connection, lottery_id), services.clock()
            before = read_prizes(connection, lottery_id)
            name, after = _wanted(lottery, before, change)
            if (name, after) == (lottery["name"], before):
                return
            _check(lottery, change, after, now)
            stock_changes = [prize["stock"] for prize in after] != [prize["stock"] for prize in before]
            if stock_changes:
                _have_cold(services, keys)
                _check_drawn(services, connection, keys, after)
                moved = move_units(services, connection, lottery, before, after)
            crash_point("lottery.before_change")
            _write(connection, lottery, name, before, after, now)
    except CouponWorkersError:
        # What was made cold before it was refused; what is left cold otherwise, the sweep warms.
        _tell(services, lottery_id, stock_changes)
        raise
    _tell(services, lottery_id, stock_changes)
    for template_id in moved:
        tell_template_gate(services, template_id)


def _tell(services: Services, lottery_id: int, stock_changes: bool) -> None:
    if stock_changes:
        preheat_if_redis_answers(services, lottery_id)
    else:
        tell_gate(services, lottery_id)


def _wanted(lottery: Row, before: Sequence[Row], change: LotteryChange) -> tuple[str, list[Row]]:
    asked = {prize.prize_no: prize for prize in change.prizes}
    known = {prize["prize_no"] for prize in before}
    wrong = [place for place, prize in enumerate(change.prizes) if prize.prize_no not in known]
    if wrong:
        raise InvalidInput([(f"prizes.{place}.prize_no", "there is no such prize") for place in wrong])
    if len(asked) < len(change.prizes):
        raise InvalidInput([("prizes", "names a prize twice")])
    return change.name or lottery["name"], [_changed(prize, asked.get(prize["prize_no"])) for prize in before]


def _changed(prize: Row, asked: PrizeChange | None) -> Row:
    if asked is None:
        return prize
    stock = prize["stock"] if asked.stock is None else asked.stock
    weight = prize["weight"] if asked.weight is None else asked.weight
    return {**prize, "weight": weight, "stock": stock, "left_quantity": stock - prize["drawn_count"]}


def _check(lottery: Row, change: LotteryChange, after: Sequence[Row], now: datetime) -> None:
    if status_now(lottery, now) not in CHANGES:
        raise wrong_status(lottery, now, "cannot be changed: pause it first, if it runs")
    if lottery["version"] != change.version:
        raise Conflict("LOTTERY_CHANGED", "somebody changed it since you looked at it", version=lottery["version"])
    if (problem := weights_problem([prize["weight"] for prize in after])) is not None:
        raise InvalidInput([("prizes", problem)])
    for prize in after:
        _check_stock(prize, prize["drawn_count"])


def _check_stock(prize: Row, drawn: int) -> None:
    if prize["stock"] < drawn:
        detail = f"{drawn} of prize {prize['prize_no']} are drawn already: its stock cannot be lower"
        raise Conflict("BELOW_DRAWN", detail, prize_no=prize["prize_no"], drawn=drawn)


def _have_cold(services: Services, keys: LotteryKeys) -> None:
    try:
        services.redis.unlink(keys.generation)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error


def _check_drawn(services: Services, connection: Connection, keys: LotteryKeys, after: Sequence[Row]) -> None:
    """What waits is drawn too: from here on the gate lets nothing in."""
    pending, _ = read_pending(services.redis, keys, _MOST_PENDING)
    named = {"lottery_id": keys.lottery_id, "draw_ids": [draw.draw_id for draw in pending]}
    known = set(connection.scalars(_KNOWN, named))
    queued = Counter(draw.prize_no for draw in pending if draw.draw_id not in known)
    for prize in after:
        _check_stock(prize, prize["drawn_count"] + queued[prize["prize_no"]])


def _write(
    connection: Connection, lottery: Row, name: str, before: Sequence[Row], after: Sequence[Row], now: datetime
) -> None:
    lottery_id = lottery["lottery_id"]
    connection.execute(_LOTTERY, {"lottery_id": lottery_id, "name": name, "now": now})
    columns = {f"{column}s": [prize[column] for prize in after] for column in ("prize_no", "weight", "stock")}
    connection.execute(_PRIZE, {"lottery_id": lottery_id, **columns})
    facts = [{"name": told, "prizes": _told(prizes)} for told, prizes in ((lottery["name"], before), (name, after))]
    record(connection, AuditAction.LOTTERY_CHANGE, f"lottery:{lottery_id}", before=facts[0], after=facts[1])


def _told(prizes: Sequence[Row]) -> list[dict[str, int]]:
    return [{column: prize[column] for column in ("prize_no", "weight", "stock")} for prize in prizes]
