"""The gate: one script in Redis decides a claim, in one round trip (DESIGN 6)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import HELD, ClaimOutcome
from coupon_workers.claiming.pending import BELL_TTL_MS
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.lean_redis import LeanConnection, pack
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.metrics import observe_script
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.shared_trip import SharedTrip

ACCEPTED, REPLAYED = ClaimOutcome.ACCEPTED, ClaimOutcome.REPLAYED
_OUTCOMES = {outcome.value.encode(): outcome for outcome in ClaimOutcome}


class Decision(NamedTuple):
    """The gate's answer. ``claim_id`` is set when accepted or replayed, ``state`` when replayed, ``start_ms`` when
    not started, ``wait_ms`` when rate limited, ``rule`` when a risk policy refused. ``ring``: the doorbell is to be
    sent."""

    outcome: ClaimOutcome
    claim_id: int = 0
    state: str = "queued"
    start_ms: int = 0
    wait_ms: int = 0
    ring: bool = False
    rule: str = ""


class ClaimGate:
    """The way to the script for the threads of one process: single claims that meet share a round trip, over one
    connection; a thread with a batch has a connection of its own.

    ``now_ms`` 0 means Redis's own clock: one clock opens a sale for all fronts.
    """

    def __init__(self, settings: Settings, next_claim_id: Callable[[int], int]) -> None:
        if settings.redis_url is None:
            raise StoreUnavailable("Redis", "COUPON_REDIS_URL is not set and no embedded server runs")
        self._connect = partial(LeanConnection, settings.redis_url.get_secret_value(), settings.redis_timeout_ms)
        self._next_claim_id = next_claim_id
        self._script = lua_script("claim")
        self._tail = (str(settings.backlog_limit), str(settings.claim_rate), str(BELL_TTL_MS))
        self._local = threading.local()
        self._keys: dict[int, tuple[str, ...]] = {}
        self._trip = SharedTrip(partial(self._ask, "claim", self._connect()))

    def claim(self, request: ClaimRequest, now_ms: int = 0) -> Decision:
        """Decide one claim.

        Raises ``StoreUnavailable`` when Redis did not answer twice: the claim may have been accepted, and the same
        request asked again will be told.
        """
        claim_id = self._next_claim_id(request.template_id)
        command = self._pack(claim_id, request, now_ms)
        try:
            answer = _told(self._trip.ask(command))
            heard_first = True
        except StoreUnavailable:
            # Unknown is not refused: the same question again, under the same id, is answered once and for all.
            answer = _told(self._trip.ask(command))
            heard_first = False
        crash_point("web.after_script")
        return _decision(answer, claim_id, heard_first)

    def claim_many(self, requests: Sequence[ClaimRequest], now_ms: int = 0) -> list[Decision]:
        """Decide claims in order, in one round trip. Raises ``StoreUnavailable`` as ``claim`` does."""
        claims = [(self._next_claim_id(request.template_id), request) for request in requests]
        commands = [self._pack(claim_id, request, now_ms) for claim_id, request in claims]
        connection = self._own_connection()
        try:
            answers = [_told(answer) for answer in self._ask("batch", connection, commands)]
            heard_first = True
        except StoreUnavailable:
            answers = [_told(answer) for answer in self._ask("batch", connection, commands)]
            heard_first = False
        crash_point("web.after_script")
        return [_decision(answer, claim_id, heard_first) for answer, (claim_id, _) in zip(answers, claims, strict=True)]

    def _pack(self, claim_id: int, request: ClaimRequest, now_ms: int) -> bytes:
        template_id, user_id, request_id, channel, *named = request
        return pack(
            "EVALSHA",
            self._script.sha,
            14,
            *self._keys_of(template_id),
            claim_id,
            user_id,
            request_id,
            now_ms,
            channel,
            *self._tail,
            *(named if any(named) else ()),
        )

    def _keys_of(self, template_id: int) -> tuple[str, ...]:
        found = self._keys.get(template_id)
        if found is None:
            keys = BucketKeys(template_id)
            found = (
                keys.meta,
                keys.generation,
                keys.stock,
                keys.takers,
                keys.requests,
                keys.claims,
                keys.pending,
                keys.bell,
                keys.day_prefix,
                keys.rate_prefix,
                keys.pool,
                keys.risk_list,
                keys.risk_prefix,
                keys.risk_log,
            )
            if len(self._keys) >= 10_000:
                self._keys.clear()
            self._keys[template_id] = found
        return found

    def _own_connection(self) -> LeanConnection:
        connection: LeanConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
        return connection

    def _ask(self, call: str, connection: LeanConnection, commands: Sequence[bytes]) -> list[Any]:
        asked_s = perf_counter()
        try:
            answers = connection.ask(commands)
        finally:  # an answer that never came took its time too
            observe_script((call, perf_counter() - asked_s))
        if any(type(answer) is not list and str(answer).startswith("NOSCRIPT") for answer in answers):
            # A server that does not know the script learns it; the caller asks again, as after a lost answer.
            connection.ask([pack("SCRIPT", "LOAD", self._script.source)])
        return answers


def _told(answer: Any) -> list[Any]:
    """What the script answered. An error is that of one claim alone, whoever shared the trip."""
    if type(answer) is not list:
        raise StoreUnavailable("Redis", str(answer))
    return answer


def _decision(answer: list[Any], claim_id: int, heard_first: bool) -> Decision:
    outcome = _OUTCOMES[answer[0]]
    if outcome is ACCEPTED:
        return Decision(ACCEPTED, claim_id, ring=answer[2] == 1)
    if outcome is REPLAYED:
        if not heard_first and int(answer[1]) == claim_id:
            # Our own first question was carried out and only its answer was lost; nobody may have rung.
            return Decision(ACCEPTED, claim_id, ring=True)
        state = answer[2].decode()
        return Decision(REPLAYED, int(answer[1]), "queued" if state == HELD else state)
    if outcome is ClaimOutcome.NOT_STARTED:
        return Decision(outcome, start_ms=answer[1])
    if outcome is ClaimOutcome.RATE_LIMITED:
        return Decision(outcome, wait_ms=answer[1])
    if outcome is ClaimOutcome.RISK_REJECTED:
        return Decision(outcome, rule=answer[1].decode())
    return Decision(outcome)
