"""Poison in the real queues and streams, and every message delivered three times (FAULTS 13, 14)."""

from __future__ import annotations

import random
from typing import Any

from sqlalchemy import text

from tests.support.fault_campaign import Campaign, OpenCampaign
from tests.support.fault_post import call_dead, dead, encode, own_id, put, triple
from tests.support.fault_sale import Offer
from tests.support.fault_system import FaultSystem
from tests.support.fault_wait import until
from tests.support.history_books import pending_key

FIVE_MEGABYTES = 5 * 1024 * 1024
SET_ASIDE_S = 20.0
LONGEST_LINE = 25_000
"""Characters: what failed is named in the log, and not repeated there with all its megabytes."""

UNREADABLE = (b"", b"\xff\xfe{", b'{"queue_name": "settle"', b"null", b"[]", b"{}", b"x" * FIVE_MEGABYTES)
POISONED_ENTRIES: tuple[dict[str, Any], ...] = (
    {"x": "y"},
    {"c": "many", "u": "zoe", "r": "r1", "s": 1, "t": 1_800_000_000_000, "d": "", "e": 0, "h": ""},
    {"c": 4711, "u": b"\xff\xfe", "r": "r1", "s": 1, "t": 1_800_000_000_000, "d": "", "e": 0, "h": ""},
    {"c": 4712, "u": b"a\x00b", "r": "r1", "s": 1, "t": 1_800_000_000_000, "d": "", "e": 0, "h": ""},
    {"c": 4713, "u": "u" * 5_000, "r": "r1", "s": 1, "t": 1_800_000_000_000, "d": "", "e": 0, "h": ""},
)


FAILING: tuple[tuple[str, str, list[Any]], ...] = (
    ("settle", "nobody", [1]),
    ("settle", "settle_claims", []),
    ("settle", "settle_claims", [1, 2, 3]),
    ("care", "preheat_template", [{"a": 1}]),
    ("care", "sweep_gates", ["x" * FIVE_MEGABYTES]),
    ("care", "preheat_template", []),
    ("care", "sweep_gates", ["please"]),
)
"""Messages that can be read and not be done: queue, actor, arguments."""


def test_poison_is_set_aside_and_everything_else_is_done(system: FaultSystem, open_campaign: OpenCampaign) -> None:
    """Bytes that are no message, no claim, or nothing an actor can do; claims are settled between them."""
    campaign = open_campaign(seed=131)
    broker = campaign.broker
    poison = [(queue, content) for queue in ("settle", "care") for content in UNREADABLE]
    poison += [(queue, encode(actor, args, queue)) for queue, actor, args in FAILING]

    with campaign.under_load():
        for queue, content in poison:
            put(broker, queue, content)
        for template_id in campaign.template_ids:
            for fields in POISONED_ENTRIES:
                campaign.stock.xadd(pending_key(template_id), fields)  # type: ignore[arg-type]
        campaign.load.wait_for(400)
        took_s = until(lambda: len(letters(campaign)) >= len(poison), SET_ASIDE_S, "the dead letters")
    campaign.facts["poison"] = len(poison)
    campaign.facts["set aside ms"] = round(took_s * 1000)
    campaign.heal()

    assert len(POISONED_ENTRIES) * len(campaign.template_ids) == entries_set_aside(campaign)
    assert len(poison) == len(letters(campaign))
    assert {own_id(content) for _, content in poison} == set(letters(campaign).values())
    assert {200} == {discard(campaign, message_id) for message_id in letters(campaign)}
    broken = campaign.broken_letters()
    traces = broken.pop("I", [])
    assert {} == broken
    assert all("Failed to process message" in trace or "undefined actor" in trace for trace in traces)
    assert max(len(line) for log in campaign.logs() for line in log.splitlines()) < LONGEST_LINE


def letters(campaign: Campaign) -> dict[str, str]:
    """The dead letters of both queues: the id under which each lies there → the message's own."""
    return dead(campaign.broker, "settle") | dead(campaign.broker, "care")


def entries_set_aside(campaign: Campaign) -> int:
    """Stream entries that were set aside, each with a reason."""
    statement = "SELECT count(*) FROM claim_set_aside WHERE template_id = ANY(:ids) AND reason <> ''"
    with campaign.engine.connect() as connection:
        return int(connection.scalar(text(statement), {"ids": campaign.template_ids}) or 0)


def discard(campaign: Campaign, message_id: str) -> int:
    """Throw a dead letter away over HTTP; the status."""
    return campaign.ask("POST", f"/v1/dead-letters/{message_id}/discard", key=f"discard-{message_id}").status


def test_a_message_that_kills_its_worker_is_set_aside_after_three_deliveries(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """Whoever preheats this template dies; claims of all templates are settled by those who come after."""
    campaign = open_campaign(seed=132, rate=200)
    broker = campaign.broker

    with campaign.under_load():
        system.restart("worker", COUPON_CRASH_AT="preheat.before_swap:1")
        message_id = put(broker, "care", encode("preheat_template", [campaign.template_ids[0]], "care"))
        for _ in range(3):
            dying = system.master("worker")
            system.wait_for_another("worker", dying)
            campaign.facts["workers killed"] += 1
            until(lambda: len(system.family("worker")) > 1, what="a worker's processes")
            call_dead(broker)
        until(lambda: message_id in dead(broker, "care"), SET_ASIDE_S, "the dead letter")
        survivor = system.master("worker")
        campaign.load.wait_for(200)
    campaign.heal()

    assert survivor == system.master("worker")
    assert 200 == discard(campaign, message_id)
    assert {} == campaign.broken_letters()


def test_messages_delivered_three_times_and_shuffled_settle_each_claim_once(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """Thirty templates' doorbells, and preheats among them, in the hands of four threads at once."""
    offers = tuple(Offer(total=200, weight=1, per_user=2) for _ in range(30))
    campaign = open_campaign(seed=141, offers=offers, users=200)
    broker, draw = campaign.broker, random.Random(141)

    with campaign.under_load():
        with system.held_down("worker"):
            campaign.load.wait_for(800)
            for template_id in campaign.template_ids[::2]:
                put(broker, "care", encode("preheat_template", [template_id], "care"))
            for queue in ("settle", "care"):
                campaign.facts["tripled"] += triple(broker, queue, draw)
        until(lambda: campaign.queued() < 50, what="the end of the queue")
        campaign.load.wait_for(200)
    campaign.heal()

    assert campaign.facts["tripled"] > 30
    assert {} == letters(campaign)
    assert {} == campaign.broken_letters()
