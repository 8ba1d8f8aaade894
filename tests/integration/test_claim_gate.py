"""The gate between a process and Redis: answers that get lost, servers that stall or forget, claims in one go."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate import ClaimGate, Decision
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services
from tests.support.redis_proxy import Fault, RedisProxy, proxied
from tests.support.sale import Sale, assert_sound, gate_of, open_sale
from tests.support.template import TEMPLATE_ID, insert_template

ACCEPTED = ClaimOutcome.ACCEPTED
TIMEOUT_MS, PATIENT_MS = 400, 20_000
ANN = ClaimRequest(TEMPLATE_ID, "ann", "r1")


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units, and a server that knows the script."""
    opened = open_sale(services)
    opened.claim("first")
    return opened


@pytest.fixture
def way(services: Services, sale: Sale) -> Iterator[tuple[RedisProxy, ClaimGate]]:
    """A proxy, and a gate behind it."""
    with proxied(services.settings, redis_timeout_ms=TIMEOUT_MS) as (proxy, settings):
        yield proxy, ClaimGate(settings, services.next_id)


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.HOLD_ANSWER])
def test_a_claim_whose_answer_is_lost_is_accepted_and_takes_one_unit(
    sale: Sale, way: tuple[RedisProxy, ClaimGate], fault: Fault
) -> None:
    """It is asked again under the same id; nobody may have rung for it, so it rings."""
    proxy, gate = way
    proxy.plan(fault)

    decision = gate.claim(ANN)

    assert (ACCEPTED, True) == (decision.outcome, decision.ring)
    assert f"{decision.claim_id} queued" == sale.answer("ann")
    assert (8, 2, 2) == (sale.stock, sale.queued, proxy.questions)


def test_a_claim_that_never_arrived_is_asked_again(sale: Sale, way: tuple[RedisProxy, ClaimGate]) -> None:
    """From outside it looks like a lost answer."""
    proxy, gate = way
    proxy.plan(Fault.LOSE_QUESTION)

    assert ACCEPTED == gate.claim(ANN).outcome
    assert (8, 2) == (sale.stock, sale.queued)


def test_a_question_that_arrives_after_it_was_asked_again_takes_nothing_more(
    sale: Sale, way: tuple[RedisProxy, ClaimGate]
) -> None:
    """A network that holds a packet back delivers it in the end."""
    proxy, gate = way
    proxy.plan(Fault.HOLD_QUESTION)

    decision = gate.claim(ANN)
    proxy.close()

    assert (ACCEPTED, f"{decision.claim_id} queued") == (decision.outcome, sale.answer("ann"))
    assert (8, 2) == (sale.stock, sale.queued)


def test_a_claim_that_is_lost_twice_is_unknown_and_told_when_the_caller_asks_again(
    sale: Sale, way: tuple[RedisProxy, ClaimGate]
) -> None:
    """Unknown is no refusal: the unit is taken once, and the caller's own retry finds it."""
    proxy, gate = way
    proxy.plan(Fault.LOSE_ANSWER, Fault.LOSE_ANSWER)

    with pytest.raises(StoreUnavailable):
        gate.claim(ANN)
    decision = gate.claim(ANN)

    assert Decision(ClaimOutcome.REPLAYED, decision.claim_id, "queued") == decision
    assert (8, 2) == (sale.stock, sale.queued)


def test_a_claim_settled_before_it_was_asked_again_is_accepted(sale: Sale, services: Services) -> None:
    """The caller has not heard of it: to him it is new, whatever has become of it meanwhile."""
    with (
        proxied(services.settings, redis_timeout_ms=700) as (proxy, settings),
        ThreadPoolExecutor(1) as thread,
    ):
        proxy.plan(Fault.HOLD_ANSWER)
        asked = thread.submit(ClaimGate(settings, services.next_id).claim, ANN)
        while sale.answer("ann") is None:
            assert not asked.done()
        sale.drain()
        decision = asked.result()

    assert (ACCEPTED, "queued") == (decision.outcome, decision.state)
    assert f"{decision.claim_id} issued" == sale.answer("ann")
    assert_sound(services)


def test_a_replay_whose_answer_is_lost_stays_a_replay(sale: Sale, way: tuple[RedisProxy, ClaimGate]) -> None:
    """The claim it finds is not the one it brought."""
    proxy, gate = way
    first = gate.claim(ANN)
    proxy.plan(Fault.LOSE_ANSWER)

    assert Decision(ClaimOutcome.REPLAYED, first.claim_id, "queued") == gate.claim(ANN)


def test_a_stalled_server_is_given_up_after_two_time_outs(sale: Sale, way: tuple[RedisProxy, ClaimGate]) -> None:
    """And once it goes on, the claim is found, taken once."""
    proxy, gate = way
    proxy.plan(Fault.HOLD_QUESTION, Fault.HOLD_QUESTION)

    with pytest.raises(StoreUnavailable):
        gate.claim(ANN)
    proxy.release()
    decision = gate.claim(ANN)

    assert decision.outcome in (ACCEPTED, ClaimOutcome.REPLAYED)
    proxy.close()
    assert (8, 2) == (sale.stock, sale.queued)


def test_a_server_that_does_not_know_the_script_learns_it(sale: Sale) -> None:
    """It was restarted or replaced; the claim is taken once."""
    sale.services.redis.script_flush()

    assert ACCEPTED == sale.claim("ann").outcome
    assert (8, 2) == (sale.stock, sale.queued)


def test_many_claims_are_decided_in_order_in_one_round_trip(
    sale: Sale, way: tuple[RedisProxy, ClaimGate], services: Services
) -> None:
    """Templates may mix; a request named twice is a replay of itself; one bell a template."""
    proxy, gate = way
    other = insert_template(services.engine, template_id=7_002)
    sale.services.redis.delete(sale.keys.bell)
    requests = [ANN, ANN._replace(user_id="bob"), ANN, ANN._replace(template_id=other), ANN._replace(user_id="cat")]

    decisions = gate.claim_many(requests)

    expected = [ACCEPTED, ACCEPTED, ClaimOutcome.REPLAYED, ClaimOutcome.NOT_WARMED, ACCEPTED]
    assert expected == [decision.outcome for decision in decisions]
    assert decisions[0].claim_id == decisions[2].claim_id
    assert [True, False, False, False, False] == [decision.ring for decision in decisions]
    assert (1, 6, 4) == (proxy.questions, sale.stock, sale.queued)


def test_many_claims_whose_answers_are_lost_are_asked_again_together(
    sale: Sale, way: tuple[RedisProxy, ClaimGate]
) -> None:
    """Each keeps its id; the doubled request is still a replay."""
    proxy, gate = way
    proxy.plan(Fault.LOSE_ANSWER)

    decisions = gate.claim_many([ANN, ANN._replace(user_id="bob"), ANN])

    assert [ACCEPTED, ACCEPTED, ClaimOutcome.REPLAYED] == [decision.outcome for decision in decisions]
    assert (7, 3) == (sale.stock, sale.queued)


def test_an_error_in_the_midst_of_many_answers_is_unknown_to_all(sale: Sale, services: Services) -> None:
    """A server out of memory, or a key that is not what it should be: no half-read answer, no crash."""
    other = open_sale(services, template_id=7_002)
    services.redis.set(other.keys.takers, "not a hash")

    with pytest.raises(StoreUnavailable):
        sale.gate.claim_many([ANN, ANN._replace(template_id=other.template_id)])

    assert ClaimOutcome.REPLAYED == sale.claim("ann").outcome
    assert 8 == sale.stock


def test_a_server_out_of_memory_is_unavailable_and_nothing_is_taken(sale: Sale) -> None:
    """A refusal before the first write."""
    client = sale.services.redis
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(StoreUnavailable):
            sale.claim("ann")
    finally:
        client.config_set("maxmemory", 0)

    assert (9, 1) == (sale.stock, sale.queued)


def test_threads_that_share_round_trips_each_hear_their_own_answer(services: Services) -> None:
    """Answers are never mixed up between threads."""
    sale = open_sale(services, total_quantity=400)
    gate = gate_of(services, claim_rate=0)

    def claim_some(user: str) -> list[tuple[int, Any]]:
        decisions = [gate.claim(ClaimRequest(TEMPLATE_ID, user, f"r{number}")) for number in range(50)]
        stored = [services.redis.hget(sale.keys.requests, f"{user} r{number}") for number in range(50)]
        return list(zip([decision.claim_id for decision in decisions], stored, strict=True))

    with ThreadPoolExecutor(8) as threads:
        told = [pair for pairs in threads.map(claim_some, [f"u{number}" for number in range(8)]) for pair in pairs]

    assert [f"{claim_id} queued".encode() for claim_id, _ in told] == [stored for _, stored in told]


def test_claims_that_meet_are_one_question_to_the_server(sale: Sale, services: Services) -> None:
    """While one is under way the others wait, and go together; each is decided by itself, in the order they came."""
    with proxied(services.settings, redis_timeout_ms=PATIENT_MS) as (proxy, settings):
        told = _meeting(proxy, ClaimGate(settings, services.next_id), [ANN, ANN, ANN._replace(user_id="bob")])

        assert [ACCEPTED, ClaimOutcome.REPLAYED, ACCEPTED] == [decision.outcome for decision in told]
        assert (2, 6, 4) == (proxy.questions, sale.stock, sale.queued)


def test_claims_whose_shared_answer_is_lost_are_asked_again_each_under_its_own_id(
    sale: Sale, services: Services
) -> None:
    """All of them may have been accepted: none takes a second unit, and each rings, as nobody may have."""
    with proxied(services.settings, redis_timeout_ms=PATIENT_MS) as (proxy, settings):
        bob = ANN._replace(user_id="bob")

        told = _meeting(proxy, ClaimGate(settings, services.next_id), [ANN, bob], Fault.LOSE_ANSWER)

        assert [(ACCEPTED, True)] * 2 == [(decision.outcome, decision.ring) for decision in told]
        assert [f"{decision.claim_id} queued" for decision in told] == [sale.answer("ann"), sale.answer("bob")]
        assert (6, 4) == (sale.stock, sale.queued)


def test_a_broken_template_fails_no_claim_of_another_one_that_shares_its_trip(sale: Sale, services: Services) -> None:
    """Somebody's key that is not what it should be is his trouble alone."""
    other = open_sale(services, template_id=7_002)
    services.redis.set(other.keys.takers, "not a hash")
    with proxied(services.settings, redis_timeout_ms=PATIENT_MS) as (proxy, settings):
        broken = ANN._replace(template_id=other.template_id)

        told = _meeting(proxy, ClaimGate(settings, services.next_id), [broken, ANN])

        assert [None, ACCEPTED] == [decision and decision.outcome for decision in told]


def _meeting(proxy: RedisProxy, gate: ClaimGate, claims: list[ClaimRequest], fault: Fault = Fault.NONE) -> list[Any]:
    """Have one claim, of "early", be under way while ``claims`` come, and these go together and meet ``fault``.

    Returns their decisions; None for one whose answer is unknown.
    """
    proxy.plan(Fault.HOLD_QUESTION, fault)
    early = ClaimRequest(TEMPLATE_ID, "early", "r1")

    def claim(request: ClaimRequest) -> Decision | None:
        try:
            return gate.claim(request)
        except StoreUnavailable:
            return None

    with ThreadPoolExecutor(1 + len(claims)) as threads:
        first = threads.submit(claim, early)
        while not proxy.questions:
            assert not first.done()
        asked = []
        for request in claims:
            asked.append(threads.submit(claim, request))
            while len(gate._trip._waiting) < len(asked):
                assert not asked[-1].done()
        proxy.release()
        assert first.result() is not None
        return [each.result() for each in asked]
