"""Coupons that are given away: short ways for tests to do it and to look at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Barrier, Thread
from typing import Any

from coupon_workers.coupons.transfer import Transfer, transfer_coupon
from coupon_workers.errors import Conflict, CouponWorkersError
from coupon_workers.runtime.services import Services
from tests.support.sale import Sale

OPERATOR = "key-1"


def give(services: Services, user: str, coupon_id: int, to_user: str) -> int:
    """Give the coupon away; the number of the receiver's."""
    return transfer_coupon(services, Transfer(user, coupon_id, to_user, services.next_id(0)), operator=OPERATOR)


@dataclass(frozen=True)
class Refusal:
    """An expected error: its code, and its evidence."""

    code: str
    evidence: tuple[tuple[str, object], ...] = ()


def refusal(act: Callable[[], object]) -> Refusal | None:
    """The refusal that ``act`` meets; None when it meets none."""
    try:
        act()
    except CouponWorkersError as error:
        evidence = tuple(sorted(error.evidence.items())) if isinstance(error, Conflict) else ()
        return Refusal(getattr(error, "code", type(error).__name__), evidence)
    return None


def at_once(*acts: Callable[[], object]) -> list[Any]:
    """What each returns, or the error it raises; all in threads of their own that start together."""
    barrier = Barrier(len(acts))
    outcomes: list[Any] = [None] * len(acts)

    def run(place: int, act: Callable[[], object]) -> None:
        barrier.wait()
        try:
            outcomes[place] = act()
        except Exception as error:  # noqa: BLE001 - it is what the test looks at
            outcomes[place] = error

    threads = [Thread(target=run, args=(place, act)) for place, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def coupon_row(sale: Sale, coupon_id: int) -> dict[str, Any]:
    """The row."""
    columns = (
        "user_id, template_id, batch_no, claim_seq, request_id, status, version, face_value_minor, template_version,"
        " valid_from, valid_to, order_no, source, claimed_at"
    )
    [row] = sale.rows(f"SELECT {columns} FROM coupon WHERE coupon_id = {coupon_id}")
    return dict(zip(columns.split(", "), row, strict=True))


def flow(sale: Sale, coupon_id: int) -> list[tuple[Any, ...]]:
    """(number, action, from, to, operator) of the coupon's steps."""
    return sale.rows(
        "SELECT flow_no, action, from_status, to_status, operator FROM coupon_flow"
        f" WHERE coupon_id = {coupon_id} ORDER BY flow_no"
    )


def events(sale: Sale, event: str) -> Sequence[tuple[Any, ...]]:
    """(user, coupon) of the outbox rows of one kind, in order."""
    return sale.rows(f"SELECT user_id, coupon_id FROM outbox WHERE event = '{event}' ORDER BY outbox_id")
