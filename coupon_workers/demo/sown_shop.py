"""A shop in the middle of its day, for whoever wants to look at it: what ``demo --serve`` sows before it opens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from coupon_workers.demo.code_story import CodeStory
from coupon_workers.demo.full_demo import Story
from coupon_workers.demo.guarded_story import GuardedStory
from coupon_workers.demo.lottery_story import LotteryStory
from coupon_workers.demo.past_day import close_yesterday, noon_yesterday, spend_yesterday
from coupon_workers.demo.pool_story import PoolStory
from coupon_workers.demo.stage import Stage
from coupon_workers.demo.traffic import Traffic
from coupon_workers.load.claim_call import ClaimCall
from coupon_workers.load.http_request import Address
from coupon_workers.load.order_report import free_coupons
from coupon_workers.load.order_story import Buyer
from coupon_workers.load.settled import wait_until_settled
from coupon_workers.runtime.clock import rfc3339, utc_now
from coupon_workers.runtime.task import Queue, Task

VISITOR = "ann"
"""Whose wallet is full already: a name to pick in the shop."""

STOCK = 20_000
"""Of what is claimed all the time: small enough to be seen falling, large enough for an hour."""

PRIZES = 50
"""Times the prizes of the lottery's story: its crowd leaves most of them to visitors, who draw twice each."""

PAST_ORDERS, LOCKED_ORDERS = 24, 5
FANS = 30
FLASH_STOCK, FLASH_USERS = 40, 60
STEPS = 8


@dataclass(frozen=True, slots=True)
class SownShop:
    """``live``: the templates that traffic goes on with, the busiest first. ``codes``: some that nobody has used."""

    live: list[str]
    codes: list[str]
    closed: date


def sow(stage: Stage, address: Address, step: Callable[[], None]) -> SownShop:
    """Sow it; ``step`` is called ``STEPS`` times. Raises ``CouponWorkersError``, ``ClientError``."""
    codes = CodeStory(stage)
    stories: tuple[Story, ...] = (PoolStory(stage), GuardedStory(stage), codes, LotteryStory(stage, plenty=PRIZES))
    with Traffic(address, connections=8, spread=False) as traffic:
        for story in stories:
            story.prepare()
            story.play(traffic)
            step()
        live = _open_shop(stage, traffic)
    wait_until_settled(stage.services)
    step()
    closed = _past(stage, live[1])
    step()
    _hold_orders(stage, live[0])
    _campaign(stage, live[2])
    step()
    _bury(stage)
    step()
    return SownShop(live, codes.unused, closed)


def _open_shop(stage: Stage, traffic: Traffic) -> list[str]:
    """Templates in every state; those that are active have been claimed from. The ids of those that stay lively."""
    amount_off = {"type": "amount_off", "amount": 2_000, "threshold": 10_000}
    live = [
        stage.open_template("20 off 100", total_quantity=STOCK, per_user_limit=5, **amount_off),
        stage.open_template("5 off", total_quantity=STOCK, per_user_limit=None, type="cash", amount=500),
        stage.open_template("10 percent off", total_quantity=STOCK, type="percent_off", percent_off=1_000),
    ]
    flash = stage.open_template("flash", total_quantity=FLASH_STOCK, per_user_limit=1, **amount_off)
    users = [VISITOR, *(f"fan-{number}" for number in range(PAST_ORDERS))]
    calls = [ClaimCall(each, user, f"{stage.run}-sown") for each in live for user in users]
    traffic.claim([*calls, *(ClaimCall(flash, f"u{n}", f"{stage.run}-flash") for n in range(FLASH_USERS))])
    _quiet(stage, amount_off)
    return live


def _quiet(stage: Stage, terms: dict[str, Any]) -> None:
    """One that is paused, one taken offline, one of tomorrow, a draft, and one that waits for a second person."""
    templates = stage.client.templates
    templates.pause(stage.open_template("paused", total_quantity=500, **terms))
    templates.take_offline(stage.open_template("offline", total_quantity=500, **terms))
    later = rfc3339(stage.now + timedelta(hours=20))
    stage.open_template("tomorrow", total_quantity=1_000, claim_start=later, **terms)
    stage.open_template("for approval", total_quantity=5_000, approval_required=True, **terms)
    templates.create(stage.body("draft", total_quantity=100, **terms))


def _past(stage: Stage, template_id: str) -> date:
    coupons = free_coupons(stage.services, [int(template_id)])
    now = utc_now()  # the coupons have just been claimed
    at = noon_yesterday(now)
    return close_yesterday(stage, spend_yesterday(stage, coupons[:PAST_ORDERS], now, at), at)


def _hold_orders(stage: Stage, template_id: str) -> None:
    """Orders that nobody will pay: the sweep lets go of their coupons in a quarter of an hour."""
    for number, (user_id, coupon_id) in enumerate(free_coupons(stage.services, [int(template_id)])[:LOCKED_ORDERS]):
        buyer = Buyer(user_id, str(coupon_id), f"{stage.run}-cart-{number}", stage.now)
        stage.client.orders.lock(buyer.order_no, buyer.order, [buyer.coupon_no])  # type: ignore[arg-type]  # a dict of its fields


def _campaign(stage: Stage, template_id: str) -> None:
    for number in range(FANS):
        stage.client.batches.set_tags(f"fan-{number}", ["vip"])
    stage.client.batches.create_for_tags(template_id, "A thank-you to fans", "vip")


def _bury(stage: Stage) -> None:
    """A message that no worker knows, as one from a version that was rolled back: it is given up at once."""
    stage.services.post.send(Task("greet_birthdays", Queue.CARE, ("2026-11-11",)))
    stage.wait_for("the message is not given up", lambda: any(True for _ in stage.client.operations.dead_letters()))
