"""Giving a coupon away: this one ends, and its receiver is issued another one (API.md, Wallet; DESIGN 7)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from coupon_workers.coupons.transfer_sql import PRESENT_STATE, TRANSFER
from coupon_workers.coupons.transition import CouponStatus
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.wallet.stale_wallet import forget_stale_wallets

TRIES = 3
"""A coupon that was locked when it should move and unused when it was read again: an order let it go in between."""


class Transfer(NamedTuple):
    """Who gives which coupon to whom. ``to_coupon_id``: the number of the receiver's coupon, if it comes to that."""

    user_id: str
    coupon_id: int
    to_user_id: str
    to_coupon_id: int


def transfer_coupon(services: Services, transfer: Transfer, *, operator: str) -> int:
    """Give the coupon away; the number of the receiver's coupon.

    Safe to run twice: the same coupon to the same receiver is the same transfer, whose coupon it answers. ``operator``
    says who or what triggered it. Raises ``InvalidInput`` for a gift to oneself, ``NotFound`` ``COUPON_NOT_FOUND`` also
    for another user's coupon, ``Conflict`` ``NOT_TRANSFERABLE``, ``EXPIRED`` or ``COUPON_NOT_AVAILABLE`` with
    ``coupon_status`` (and ``order_no`` when an order has locked it), and ``StoreUnavailable``.
    """
    if transfer.user_id == transfer.to_user_id:
        raise InvalidInput([("to_user_id", "must be another user")])
    now = services.clock()
    with transaction(services.engine) as connection:
        to_coupon_id = _move(connection, transfer, operator, now)
    forget_stale_wallets(services, {transfer.user_id, transfer.to_user_id})
    return to_coupon_id


def _move(connection: Connection, transfer: Transfer, operator: str, now: datetime) -> int:
    arguments = transfer._asdict() | {"operator": operator, "request_id": None, "now": now}
    for tries_left in reversed(range(TRIES)):
        if connection.scalar(TRANSFER, arguments):
            return transfer.to_coupon_id
        state = connection.execute(PRESENT_STATE, arguments).mappings().first()
        if state is None:
            raise NotFound("COUPON_NOT_FOUND", "this user has no coupon of that number")
        if state["to_user_id"] == transfer.to_user_id:
            return int(state["to_coupon_id"])
        if not state["may_move"] or not tries_left:
            raise _refusal(dict(state))
    raise AssertionError("unreachable")


def _refusal(state: dict[str, Any]) -> Conflict:
    """Why a coupon in this state does not move: what its template says, then what has become of it."""
    status = state["status"]
    if not state["transferable"]:
        return Conflict("NOT_TRANSFERABLE", "coupons of this template cannot be given away")
    if status == CouponStatus.EXPIRED or (status == CouponStatus.UNUSED and not state["may_move"]):
        return Conflict("EXPIRED", f"the coupon was valid until {rfc3339(state['valid_to'])}")
    held_by = {"order_no": state["order_no"]} if status == CouponStatus.LOCKED else {}
    return Conflict("COUPON_NOT_AVAILABLE", f"the coupon is {status}", coupon_status=status, **held_by)
