"""Claiming as the storefront sees it: decide at the gate, ring the bell, explain a refusal (DESIGN 6)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.claim_status import find_claim_of_request
from coupon_workers.claiming.claim_window import find_claim_window
from coupon_workers.claiming.gate import ACCEPTED, ClaimGate, Decision
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import route_of
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import settle_claims

log = get_logger(__name__)

_REMEMBER_S = 1.0
_REMEMBER_MANY = 10_000


class ClaimFront:
    """One process's claim desk. ``claim`` costs one round trip to Redis and no SQL, whatever the answer; only a
    template that is not warm is looked up, at most once a second and process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._routes: dict[int, int] = {}
        self._gate = ClaimGate(services.settings, self._next_claim_id)
        self._cold: OrderedDict[int, tuple[float, Decision]] = OrderedDict()

    def _next_claim_id(self, template_id: int) -> int:
        route = self._routes.get(template_id)
        if route is None:
            if len(self._routes) >= _REMEMBER_MANY:
                self._routes.clear()
            route = self._routes[template_id] = route_of(template_id)
        return self._services.next_id(route)

    def claim(self, request: ClaimRequest) -> Decision:
        """Decide one claim. Raises ``StoreUnavailable`` when Redis does not answer."""
        decision = self._gate.claim(request)
        if decision.outcome is ACCEPTED:
            if decision.ring:
                self._ring(request.template_id)
            return decision
        if decision.outcome is ClaimOutcome.NOT_WARMED:
            return self._explain_cold(request)
        return decision

    def claim_many(self, requests: Sequence[ClaimRequest]) -> list[Decision]:
        """Decide claims in order, in one round trip. Raises ``StoreUnavailable``."""
        decisions = self._gate.claim_many(requests)
        rung: set[int] = set()
        answers = []
        for request, decision in zip(requests, decisions, strict=True):
            if decision.ring and request.template_id not in rung:
                rung.add(request.template_id)
                self._ring(request.template_id)
            cold = decision.outcome is ClaimOutcome.NOT_WARMED
            answers.append(self._explain_cold(request) if cold else decision)
        return answers

    def _ring(self, template_id: int) -> None:
        crash_point("web.before_bell")
        try:
            self._services.post.send(settle_claims(template_id, 0))
        except StoreUnavailable as error:
            # The claim is safe in the stream: the bell's mark expires and the sweep rings again.
            log.warning("bell not sent", template_id=template_id, error=str(error))

    def _explain_cold(self, request: ClaimRequest) -> Decision:
        """What a template without keys in Redis means: unknown, not published, over, or about to be warm."""
        now = time.monotonic()
        remembered = self._cold.get(request.template_id)
        if remembered is None or now - remembered[0] > _REMEMBER_S:
            remembered = (now, self._look_up(request.template_id))
            self._cold[request.template_id] = remembered
            while len(self._cold) > _REMEMBER_MANY:
                self._cold.popitem(last=False)
        decision = remembered[1]
        if decision.outcome is ClaimOutcome.ENDED:
            found = find_claim_of_request(self._services, request)
            if found is not None:
                return Decision(ClaimOutcome.REPLAYED, found.claim_id, found.state)
        return decision

    def _look_up(self, template_id: int) -> Decision:
        try:
            window = find_claim_window(self._services, template_id)
        except StoreUnavailable:
            return Decision(ClaimOutcome.NOT_WARMED)
        if window is None:
            return Decision(ClaimOutcome.TEMPLATE_NOT_FOUND)
        if window.status in ("draft", "pending_approval"):
            return Decision(ClaimOutcome.NOT_STARTED, start_ms=to_ms(window.claim_start))
        if window.status in ("offline", "archived") or window.claim_end <= self._services.clock():
            return Decision(ClaimOutcome.ENDED)
        return Decision(ClaimOutcome.NOT_WARMED)
