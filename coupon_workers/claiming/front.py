"""Claiming as the storefront sees it: decide at the gate, ring the bell, explain a refusal (DESIGN 6)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Sequence

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.claim_status import find_claims_of_requests
from coupon_workers.claiming.claim_window import ClaimWindow, find_claim_windows
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
_ASK_AGAIN = Decision(ClaimOutcome.NOT_WARMED)


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
            return self._explain_cold([request])[0]
        return decision

    def claim_many(self, requests: Sequence[ClaimRequest]) -> list[Decision]:
        """Decide claims in order, in one round trip; two queries explain all that are not warm.

        Raises ``StoreUnavailable``.
        """
        decisions = self._gate.claim_many(requests)
        decided = list(zip(requests, decisions, strict=True))
        for template_id in dict.fromkeys(request.template_id for request, decision in decided if decision.ring):
            self._ring(template_id)
        cold = [request for request, decision in decided if decision.outcome is ClaimOutcome.NOT_WARMED]
        if not cold:
            return decisions
        explained = iter(self._explain_cold(cold))
        return [next(explained) if decision.outcome is ClaimOutcome.NOT_WARMED else decision for decision in decisions]

    def _ring(self, template_id: int) -> None:
        crash_point("web.before_bell")
        try:
            self._services.post.send(settle_claims(template_id, 0))
        except StoreUnavailable as error:
            # The claim is safe in the stream: the bell's mark expires and the sweep rings again.
            log.warning("bell not sent", template_id=template_id, error=str(error))

    def _explain_cold(self, requests: Sequence[ClaimRequest]) -> list[Decision]:
        """What templates without keys in Redis mean: unknown, not published, over, or about to be warm."""
        cold = self._look_up({request.template_id for request in requests})
        ended = [request for request in requests if cold[request.template_id].outcome is ClaimOutcome.ENDED]
        try:
            found = find_claims_of_requests(self._services, ended) if ended else {}
        except StoreUnavailable:
            # Not the whole batch: other claims of it were accepted.
            found, cold = {}, cold | dict.fromkeys((request.template_id for request in ended), _ASK_AGAIN)
        return [
            Decision(ClaimOutcome.REPLAYED, found[request].claim_id, found[request].told_state)
            if request in found
            else self._at_this_instant(cold[request.template_id])
            for request in requests
        ]

    def _at_this_instant(self, decision: Decision) -> Decision:
        if decision.start_ms and decision.start_ms <= to_ms(self._services.clock()):
            # A draft whose window has begun, or does while this is remembered: when it will start nobody knows.
            return Decision(decision.outcome)
        return decision

    def _look_up(self, template_ids: Collection[int]) -> dict[int, Decision]:
        """By template: what is remembered, and one query for all the others."""
        now = time.monotonic()
        remembered = {template_id: self._cold.get(template_id) for template_id in template_ids}
        known = {
            template_id: kept[1] for template_id, kept in remembered.items() if kept and now - kept[0] <= _REMEMBER_S
        }
        unknown = [template_id for template_id in template_ids if template_id not in known]
        asked = self._ask(unknown) if unknown else {}
        self._cold.update({template_id: (now, decision) for template_id, decision in asked.items()})
        while len(self._cold) > _REMEMBER_MANY:
            self._cold.popitem(last=False)
        return known | asked

    def _ask(self, template_ids: Collection[int]) -> dict[int, Decision]:
        try:
            windows = find_claim_windows(self._services, template_ids)
        except StoreUnavailable:
            return dict.fromkeys(template_ids, _ASK_AGAIN)
        return {template_id: self._explanation(windows.get(template_id)) for template_id in template_ids}

    def _explanation(self, window: ClaimWindow | None) -> Decision:
        if window is None:
            return Decision(ClaimOutcome.TEMPLATE_NOT_FOUND)
        if window.status in ("draft", "pending_approval"):
            return Decision(ClaimOutcome.NOT_STARTED, start_ms=to_ms(window.claim_start))
        if window.status in ("offline", "archived") or window.claim_end <= self._services.clock():
            return Decision(ClaimOutcome.ENDED)
        return _ASK_AGAIN
