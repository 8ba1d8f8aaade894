"""Drawing as the storefront sees it: decide at the gate, ring the bell, explain a lottery that is not in Redis."""

from __future__ import annotations

import time
from collections import OrderedDict

from sqlalchemy import text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.draw_gate import DrawDecision, DrawRequest, decide
from coupon_workers.lottery.lottery import OVER, LotteryStatus, find_lottery, status_now
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import settle_draws

log = get_logger(__name__)

_REMEMBER_S = 1.0
_REMEMBER_MANY = 10_000
_ASK_AGAIN = DrawDecision(DrawOutcome.NOT_WARMED)

_DRAW = text(
    """
    SELECT d.draw_id, d.prize_no, d.reason, coalesce(p.name, '') AS name, p.template_id
      FROM draw d LEFT JOIN prize p USING (lottery_id, prize_no)
     WHERE d.lottery_id = :lottery_id AND d.user_id = :user_id AND d.request_id = :request_id
       AND d.reason IS DISTINCT FROM 'DUPLICATE'
    """
)


class DrawFront:
    """One process's desk. A draw costs one round trip to Redis and no SQL; only a lottery that is not warm is looked
    up, at most once a second and process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._cold: OrderedDict[int, tuple[float, DrawDecision]] = OrderedDict()

    def draw(self, request: DrawRequest) -> DrawDecision:
        """Decide one draw. Raises ``StoreUnavailable`` when Redis does not answer."""
        decision = decide(self._services, request)
        if decision.ring:
            self._ring(request.lottery_id)
        if decision.outcome is DrawOutcome.NOT_WARMED:
            return self._explain_cold(request)
        return decision

    def _ring(self, lottery_id: int) -> None:
        crash_point("lottery.before_bell")
        try:
            self._services.post.send(settle_draws(lottery_id))
        except StoreUnavailable as error:
            # The draw is safe in the stream: the sweep rings again.
            log.warning("bell not sent", lottery_id=lottery_id, error=str(error))

    def _explain_cold(self, request: DrawRequest) -> DrawDecision:
        """What a lottery without keys in Redis means: unknown, not approved, over, or about to be warm."""
        try:
            decision = self._look_up(request.lottery_id)
            if decision.outcome is DrawOutcome.ENDED:
                return find_draw(self._services, request) or decision
        except StoreUnavailable:
            return _ASK_AGAIN
        return decision

    def _look_up(self, lottery_id: int) -> DrawDecision:
        now, kept = time.monotonic(), self._cold.get(lottery_id)
        if kept and now - kept[0] <= _REMEMBER_S:
            return kept[1]
        decision = explain(self._services, lottery_id)
        self._cold[lottery_id] = (now, decision)
        while len(self._cold) > _REMEMBER_MANY:
            self._cold.popitem(last=False)
        return decision


def explain(services: Services, lottery_id: int) -> DrawDecision:
    """Why a lottery is not in Redis, as the database has it. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        lottery = find_lottery(connection, lottery_id)
    if lottery is None:
        return DrawDecision(DrawOutcome.LOTTERY_NOT_FOUND)
    now = services.clock()
    status = status_now(lottery, now)
    if status in OVER:
        return DrawDecision(DrawOutcome.ENDED)
    if status is LotteryStatus.PENDING_APPROVAL:
        start_ms = to_ms(lottery["start_at"])
        return DrawDecision(DrawOutcome.NOT_STARTED, start_ms=start_ms if start_ms > to_ms(now) else 0)
    return _ASK_AGAIN


def find_draw(services: Services, request: DrawRequest) -> DrawDecision | None:
    """How the request was answered, out of the database; None when it was never accepted. Raises
    ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        found = connection.execute(_DRAW, request._asdict()).first()
    if found is None:
        return None
    state = found.reason or "settled"
    return DrawDecision(DrawOutcome.REPLAYED, found.draw_id, found.prize_no, found.name, found.template_id, state)
