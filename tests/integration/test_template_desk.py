"""What operators do with templates, on real servers: the database leads, the gate follows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate import ClaimGate
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.settlement import drain
from coupon_workers.errors import Conflict, InvalidInput, StoreUnavailable
from coupon_workers.runtime.clock import rfc3339, utc_now
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from coupon_workers.templates import template_desk as desk
from coupon_workers.templates import template_reading as reading
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_answer import TemplateAnswer
from coupon_workers.templates.template_change import patch_template

NOBODY_LISTENS = "redis://127.0.0.1:1/0"


def draft(services: Services, **fields: Any) -> TemplateAnswer:
    """A new template whose claiming is open for a day."""
    now = utc_now()
    body = {
        "name": "desk",
        "type": "amount_off",
        "currency": "CNY",
        "amount": 2000,
        "total_quantity": 10,
        "claim_start": rfc3339(now - timedelta(hours=1)),
        "claim_end": rfc3339(now + timedelta(days=1)),
        "validity": {"mode": "relative", "days": 7},
    }
    return desk.create_template(services, TemplateBody.model_validate(body | fields), "key-1")


def published(services: Services, **fields: Any) -> int:
    """The identity of a published template."""
    template_id = int(draft(services, **fields).template_id)
    desk.publish_template(services, template_id)
    return template_id


def claim(services: Services, template_id: int, *users: str) -> list[ClaimOutcome]:
    """A claim by each user, decided by the gate."""
    gate = ClaimGate(services.settings, services.next_id)
    return [gate.claim(ClaimRequest(template_id, user, f"r-{user}")).outcome for user in users]


def without_redis(services: Services) -> Services:
    """The same services, with a Redis that does not answer."""
    return replace(services, redis=client_without_retries(NOBODY_LISTENS, 200))


def test_a_new_template_is_a_draft_with_its_stock_in_the_database(services: Services) -> None:
    """Nothing is loaded before it is published."""
    made = draft(services)

    assert ("draft", 1, f"T{made.template_id}") == (made.status, made.version, made.template_no)
    assert {"total": 10, "issued": 0, "queued": 0, "reserved": 0, "remaining": 10, "warmed": False} == dict(made.stock)


def test_publishing_preheats(services: Services) -> None:
    """The first claim is taken at once, and the stock is the gate's."""
    template_id = published(services)

    outcomes = claim(services, template_id, "ann")

    stock = reading.read_one(services, template_id).stock
    assert ([ClaimOutcome.ACCEPTED], True, 9, 1) == (outcomes, stock.warmed, stock.remaining, stock.queued)


def test_publishing_succeeds_without_redis(services: Services) -> None:
    """The sweep will load it; until then its stock is the database's."""
    made = draft(services)

    answer = desk.publish_template(without_redis(services), int(made.template_id))

    assert ("active", False, 10) == (answer.status, answer.stock.warmed, answer.stock.remaining)


def test_a_template_that_needs_approval_is_not_open(services: Services) -> None:
    """Publishing hands it in; claims find nothing."""
    made = draft(services, approval_required=True)

    answer = desk.publish_template(services, int(made.template_id))

    assert ("pending_approval", False) == (answer.status, answer.stock.warmed)
    assert [ClaimOutcome.NOT_WARMED] == claim(services, int(made.template_id), "ann")


def test_a_pause_stops_claims_and_rejects_the_queued_ones(services: Services) -> None:
    """Stock is as before the pause once the queue is settled; a resume opens the gate again."""
    template_id = published(services)
    claim(services, template_id, "ann", "bob")

    desk.pause_template(services, template_id)
    while_paused = claim(services, template_id, "cat")
    drain(services, template_id, 0)
    stock = reading.read_one(services, template_id).stock
    desk.resume_template(services, template_id)

    assert ([ClaimOutcome.PAUSED], 0, 10) == (while_paused, stock.issued, stock.remaining)
    assert {"PAUSED": 2} == reading.read_stats(services, template_id).rejected
    assert [ClaimOutcome.ACCEPTED] == claim(services, template_id, "dan")


@pytest.mark.parametrize("stop", [desk.pause_template, desk.take_offline])
def test_a_stop_that_redis_did_not_hear_is_asked_again_until_it_does(
    services: Services, stop: Callable[[Services, int], TemplateAnswer]
) -> None:
    """The first answer is that Redis is away, though the database has it; the second changes nothing but Redis."""
    template_id = published(services)

    with pytest.raises(StoreUnavailable):
        stop(without_redis(services), template_id)
    stopped = reading.read_one(services, template_id)
    late = claim(services, template_id, "ann")
    again = stop(services, template_id)

    assert [ClaimOutcome.ACCEPTED] == late
    assert (stopped.status, stopped.version) == (again.status, again.version)
    assert claim(services, template_id, "bob")[0] in (ClaimOutcome.PAUSED, ClaimOutcome.ENDED)
    drain(services, template_id, 0)
    assert (0, 10) == (counted(services, template_id).issued, counted(services, template_id).remaining)


def test_what_redis_did_not_hear_of_a_resume_or_a_change_is_no_failure(services: Services) -> None:
    """It is in the database, and the sweep brings it to the gate."""
    template_id = published(services)
    desk.pause_template(services, template_id)

    resumed = desk.resume_template(without_redis(services), template_id)
    changed = patch_template(without_redis(services), template_id, {"total_quantity": 11})

    assert ("active", 11) == (resumed.status, changed.total_quantity)


def test_archiving_waits_for_coupons_that_may_still_be_used(services: Services) -> None:
    """Queued, unused and locked ones are counted in the refusal; expired and redeemed ones hinder nothing."""
    template_id = published(services)
    claim(services, template_id, "ann", "bob", "cat")
    queued = refusal_of(lambda: desk.archive_template(services, template_id))
    drain(services, template_id, 0)
    unused = refusal_of(lambda: desk.archive_template(services, template_id))
    sql(services, "UPDATE coupon SET status = 'redeemed', order_no = 'o1' WHERE user_id = 'ann'")
    sql(services, "UPDATE coupon SET status = 'locked', order_no = 'o2' WHERE user_id = 'bob'")
    sql(services, "UPDATE coupon SET valid_from = now() - interval '2 days', valid_to = now() WHERE user_id = 'cat'")
    locked = refusal_of(lambda: desk.archive_template(services, template_id))
    sql(services, "UPDATE coupon SET status = 'redeemed' WHERE user_id = 'bob'")

    archived = desk.archive_template(services, template_id)

    assert ("HAS_OUTSTANDING", {"by_status": {}, "queued": 3, "reserved": 0}) == queued
    assert ("HAS_OUTSTANDING", {"by_status": {"unused": 3}, "queued": 0, "reserved": 0}) == unused
    assert ("HAS_OUTSTANDING", {"by_status": {"locked": 1}, "queued": 0, "reserved": 0}) == locked
    assert "archived" == archived.status
    assert [ClaimOutcome.ENDED] == claim(services, template_id, "dan")
    assert archived.version == desk.archive_template(services, template_id).version


def test_archiving_without_redis_changes_nothing_but_a_draft(services: Services) -> None:
    """Whether claims are queued cannot be known; of a draft none are."""
    template_id, never_published = published(services), int(draft(services).template_id)

    with pytest.raises(StoreUnavailable):
        desk.archive_template(without_redis(services), template_id)

    assert "active" == reading.read_one(services, template_id).status
    assert "archived" == desk.archive_template(without_redis(services), never_published).status


def test_the_total_never_goes_below_what_is_taken(services: Services) -> None:
    """Issued, reserved and queued units are taken; the rest can be withdrawn and reaches the gate."""
    template_id = published(services)
    claim(services, template_id, "ann", "bob")
    drain(services, template_id, 0)
    claim(services, template_id, "cat")
    sql(services, "UPDATE coupon_template SET reserved_quantity = 4")

    refused = refusal_of(lambda: patch_template(services, template_id, {"total_quantity": 6}))
    lowered = patch_template(services, template_id, {"total_quantity": 7})

    assert ("BELOW_TAKEN", {"issued": 2, "reserved": 4, "queued": 1}) == refused
    assert (7, 0) == (lowered.stock.total, lowered.stock.remaining)
    assert [ClaimOutcome.SOLD_OUT] == claim(services, template_id, "dan")


def test_raising_the_total_opens_a_sold_out_template(services: Services) -> None:
    """The units are there with the answer."""
    template_id = published(services, total_quantity=1)
    claim(services, template_id, "ann")
    sold_out = claim(services, template_id, "bob")

    patch_template(services, template_id, {"total_quantity": 2})

    assert [ClaimOutcome.SOLD_OUT] == sold_out
    assert [ClaimOutcome.ACCEPTED] == claim(services, template_id, "bob")


def test_an_earlier_end_closes_the_gate_and_a_later_one_opens_it(services: Services) -> None:
    """The end of claiming is by the gate's clock."""
    template_id = published(services)
    past, future = rfc3339(utc_now() - timedelta(minutes=1)), rfc3339(utc_now() + timedelta(hours=1))

    ended = patch_template(services, template_id, {"claim_end": past})
    closed = claim(services, template_id, "ann")
    active = patch_template(services, template_id, {"claim_end": future})

    assert ("ended", [ClaimOutcome.ENDED], "active") == (ended.status, closed, active.status)
    assert [ClaimOutcome.ACCEPTED] == claim(services, template_id, "ann")


def test_sending_an_answer_back_moves_nothing(services: Services) -> None:
    """Five times, in every status: no instant, no version."""
    template_id = int(draft(services).template_id)
    for step in (reading.read_one, *_A_WHOLE_LIFE):
        step(services, template_id)
        before = reading.read_one(services, template_id).model_dump(mode="json", by_alias=True)
        answers = [patch_template(services, template_id, before) for _ in range(5)]
        assert [before] * 5 == [answer.model_dump(mode="json", by_alias=True) for answer in answers]


_A_WHOLE_LIFE = (desk.publish_template, desk.pause_template, desk.resume_template, desk.take_offline)


def test_a_refused_change_changes_nothing(services: Services) -> None:
    """Neither a bad body nor a forbidden field."""
    template_id = published(services)
    before = reading.read_one(services, template_id)

    with pytest.raises(InvalidInput):
        patch_template(services, template_id, {"name": "N", "colour": "red"})
    refused = refusal_of(lambda: patch_template(services, template_id, {"name": "N", "amount": 1}))

    assert "NOT_PATCHABLE" == refused[0]
    assert before == reading.read_one(services, template_id)


def test_a_clone_has_the_rules_and_nothing_of_the_history(services: Services) -> None:
    """A draft of version 1 with a number of its own."""
    template_id = published(services, template_no="TPL-1", scope={"channels": ["app"]})
    claim(services, template_id, "ann")
    drain(services, template_id, 0)

    clone = desk.clone_template(services, template_id, "key-2")

    original = reading.read_one(services, template_id)
    own = {"template_no", "template_id", "status", "stock", "version", "created_at", "updated_at"}
    assert original.model_dump(exclude=own) == clone.model_dump(exclude=own)
    assert ("draft", 1, 0, f"T{clone.template_id}") == (
        clone.status,
        clone.version,
        clone.stock.issued,
        clone.template_no,
    )


def test_a_preheat_counts_the_coupons_in(services: Services) -> None:
    """After Redis has lost everything, the stock is what the database leaves."""
    template_id = published(services)
    claim(services, template_id, "ann", "bob")
    drain(services, template_id, 0)
    services.redis.flushall()
    cold = reading.read_one(services, template_id).stock

    answer = desk.preheat(services, template_id)

    assert (False, 8) == (cold.warmed, cold.remaining)
    assert (2, True, 8) == (answer.coupons_loaded, answer.stock.warmed, answer.stock.remaining)
    assert [ClaimOutcome.REPLAYED] == claim(services, template_id, "ann")


def test_the_funnel_adds_up(services: Services) -> None:
    """Claims are queued, issued or rejected; issued coupons have a status each."""
    template_id = published(services, total_quantity=5)
    claim(services, template_id, "ann", "bob", "cat")
    drain(services, template_id, 0)
    sql(services, "UPDATE coupon SET status = 'redeemed', order_no = 'o1' WHERE user_id = 'ann'")
    sql(services, "UPDATE coupon SET valid_from = now() - interval '2 days', valid_to = now() WHERE user_id = 'bob'")
    claim(services, template_id, "dan")

    stats = reading.read_stats(services, template_id)

    assert (5, 3, 1, {}, 1) == (stats.total, stats.issued, stats.queued, stats.rejected, stats.redeemed)
    expected = {"unused": 1, "locked": 0, "redeemed": 1, "expired": 1, "revoked": 0, "transferred": 0}
    assert expected == stats.by_status.model_dump()


def test_reading_needs_no_redis(services: Services) -> None:
    """Stock is then the database's."""
    template_id = published(services)

    answer = reading.read_one(without_redis(services), template_id)

    assert (False, 10) == (answer.stock.warmed, answer.stock.remaining)


def test_of_many_publishings_one_is_done(services: Services) -> None:
    """The others are told that it is active by now."""
    template_id = int(draft(services).template_id)

    def publish(_: int) -> str:
        try:
            return desk.publish_template(services, template_id).status
        except Conflict as refusal:
            return f"{refusal.code} {refusal.evidence['current_status']}"

    with ThreadPoolExecutor(4) as operators:
        heard = sorted(operators.map(publish, range(4)))

    assert ["INVALID_STATUS active"] * 3 + ["active"] == heard
    assert 2 == reading.read_one(services, template_id).version


def counted(services: Services, template_id: int) -> Any:
    """The template's stock at this moment."""
    return reading.read_one(services, template_id).stock


def refusal_of(act: Callable[[], object]) -> tuple[str, dict[str, object]]:
    """The code and the evidence of the conflict that ``act`` meets."""
    with pytest.raises(Conflict) as refusal:
        act()
    return refusal.value.code, refusal.value.evidence


def sql(services: Services, statement: str) -> None:
    """Run one statement and commit it."""
    with services.engine.begin() as connection:
        connection.execute(text(statement))
