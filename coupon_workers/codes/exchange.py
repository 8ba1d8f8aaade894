"""Exchanging a code for its coupon, once (API.md, codes; DESIGN 11, CASES 25 and 29).

Strangers hear one answer, ``CODE_INVALID``, for a code that never was, is used, has ended or belongs to another
channel: all of them take the same question of Redis and the same of PostgreSQL. A code that is right and cannot be used
at this moment is refused by its reason, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from coupon_workers.claiming.turn import wait_for_turn
from coupon_workers.codes.canonical_form import canonical
from coupon_workers.codes.code_batch import CodeBatchStatus, Row
from coupon_workers.codes.exchange_sql import HELD, HOLD, LOOK, USE
from coupon_workers.codes.guess_limit import Guesser, charge_guess, refund_guess
from coupon_workers.codes.pepper_ring import pepper_ring
from coupon_workers.codes.use_count import count_uses
from coupon_workers.errors import Conflict, NotFound, Overtaken, StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import database_errors, transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import route_of
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.templates.template_status import TemplateStatus, effective_status
from coupon_workers.templates.validity_batch import windows_ms
from coupon_workers.wallet.stale_wallet import forget_stale_wallets

log = get_logger(__name__)

NO_CODE = "\t"
"""What is hashed for a text that no code can be: it is looked for like any other, and never found."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Who wants to have which code exchanged. ``code`` is as it was typed; ``ip`` is an address, checked."""

    code: str
    user_id: str
    request_id: str
    ip: str | None = None
    device_id: str | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The coupon, and whether this user had it already."""

    coupon_id: int
    replayed: bool


class _Invalid(Exception):  # noqa: N818 - a wrong code is no error of ours
    """Whatever strangers are told ``CODE_INVALID`` for."""


def exchange_code(services: Services, wish: Exchange) -> Exchanged:
    """Use the code up and issue its coupon, in one transaction.

    Safe to run twice: who used a code gets the coupon he had for it. Raises ``NotFound`` ``CODE_INVALID``;
    ``TooManyTries``; ``Conflict`` ``REQUEST_REUSED`` for a request id that was another code's, ``LIMIT_REACHED``,
    ``DAILY_LIMIT_REACHED``, ``NOT_STARTED`` with ``starts_at``, ``PAUSED``, ``CODES_NOT_SET_UP``; ``StoreUnavailable``.
    """
    hashes = pepper_ring(services.settings).hashes_of(canonical(wish.code) or NO_CODE)
    guesser = Guesser(wish.user_id, wish.ip, wish.device_id)
    charge_guess(services, guesser)
    try:
        exchanged = _exchange(services, wish, hashes)
    except _Invalid:
        raise NotFound("CODE_INVALID", "this code cannot be exchanged") from None
    except (Conflict, StoreUnavailable):
        refund_guess(services, guesser)
        raise
    refund_guess(services, guesser)
    return exchanged


def _exchange(services: Services, wish: Exchange, hashes: Sequence[bytes]) -> Exchanged:
    with database_errors(), services.engine.connect() as connection:
        # One statement is a transaction by itself: no round trips to begin and to end it.
        found = LOOK.rows(
            connection.execution_options(isolation_level="AUTOCOMMIT"),
            {"hashes": list(hashes), "user_id": wish.user_id, "request_id": wish.request_id},
        )
    if any(not row["asked"] for row in found):
        raise _reused()
    if not found:
        raise _Invalid
    if (had := _judge(found[0], wish, services.clock())) is not None:
        return Exchanged(had, replayed=True)
    return _use(services, wish, found[0])


def _reused() -> Conflict:
    return Conflict("REQUEST_REUSED", "this request_id has exchanged another code: a request is for one")


def _judge(code: Row, wish: Exchange, now: datetime) -> int | None:
    """The coupon that this user had for the code before; None: it can be used. Raises what else there is to say."""
    if code["user_id"] == wish.user_id:
        return int(code["coupon_id"])
    status = effective_status(code, now)
    over = code["batch_status"] != CodeBatchStatus.DONE or now >= code["expires_at"]
    foreign = code["channel"] not in (None, wish.channel)
    if code["user_id"] is not None or over or foreign:
        raise _Invalid
    if status is TemplateStatus.PAUSED and now < code["claim_end"]:
        raise Conflict("PAUSED", "the coupon of this code cannot be had at this moment")
    if status is TemplateStatus.SCHEDULED:
        raise Conflict("NOT_STARTED", "the coupon of this code cannot be had yet", starts_at=code["claim_start"])
    if status is not TemplateStatus.ACTIVE:
        raise _Invalid
    return None


def _use(services: Services, wish: Exchange, seen: Row) -> Exchanged:
    now = services.clock()
    try:
        with transaction(services.engine) as connection:
            if not wait_for_turn(connection, seen["template_id"], 0):
                raise StoreUnavailable("PostgreSQL", "the template is busy")
            code = dict(connection.execute(HOLD, {"code_hash": seen["code_hash"]}).mappings().one())
            if (had := _judge(code, wish, now)) is not None:
                return Exchanged(had, replayed=True)
            held = _check_limits(connection, code, wish, now)
            coupon_id = services.next_id(route_of(code["template_id"]))
            use_no = _write(connection, code, wish, coupon_id, held.last_seq + 1, now)
            crash_point("exchange.before_commit")
    except IntegrityError:
        # The same request, at the same moment, with a code of another template: one of the two was quicker.
        raise _reused() from None
    crash_point("exchange.after_commit")
    forget_stale_wallets(services, [wish.user_id])
    _have_counted(services, code, use_no)
    return Exchanged(coupon_id, replayed=False)


def _check_limits(connection: Connection, code: Row, wish: Exchange, now: datetime) -> Any:
    """What the user holds of the template. Nothing else issues it meanwhile: this transaction has the turn."""
    named = {"user_id": wish.user_id, "now": now, "batch_no": str(code["code_batch_id"])}
    held = connection.execute(HELD, named | {name: code[name] for name in ("template_id", "timezone")}).one()
    limit, daily_limit = code["per_user_limit"], code["per_user_daily_limit"]
    if limit is not None and held.coupons >= limit:
        raise Conflict("LIMIT_REACHED", f"a user may have {limit} of these coupons; the code stays unused")
    if daily_limit is not None and held.today >= daily_limit:
        detail = f"a user may have {daily_limit} of these coupons a day; the code stays unused"
        raise Conflict("DAILY_LIMIT_REACHED", detail)
    return held


def _write(connection: Connection, code: Row, wish: Exchange, coupon_id: int, claim_seq: int, now: datetime) -> int:
    """The number of the use within its batch."""
    [(from_ms, to_ms_)] = windows_ms(code["validity"], code["timezone"], [to_ms(now)])
    written = connection.execute(
        USE,
        {
            "code_batch_id": code["code_batch_id"],
            "code_hash": code["code_hash"],
            "batch_no": str(code["code_batch_id"]),
            "template_id": code["template_id"],
            "version": code["version"],
            "user_id": wish.user_id,
            "request_id": wish.request_id,
            "channel": wish.channel,
            "coupon_id": coupon_id,
            "claim_seq": claim_seq,
            "from_ms": from_ms,
            "to_ms": to_ms_,
            "now": now,
        },
    ).one()
    if written.use_no is None or written.booked != 1:
        raise Overtaken("the code or its batch changed while they were held")
    return int(written.use_no)


def _have_counted(services: Services, code: Row, use_no: int) -> None:
    try:
        count_uses(services, code, code["code_batch_id"], use_no)
    except StoreUnavailable as error:
        log.warning("the gate learns of a coupon later", template_id=code["template_id"], error=str(error))
