"""The lives of coupons as a load of order calls: stories one after the other, with repeats and wrong bodies."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from coupon_workers.load.order_call import OrderCall
from coupon_workers.load.order_story import STORIES, Buyer

REPEAT_SHARE = 0.2
"""Calls that are sent twice at the same time, as a client does whose first try seems lost."""

WRONG_SHARE = 0.05
"""Calls beside which one with a broken body is sent: it must change nothing."""

REFUSED = frozenset({422})


@dataclass(slots=True)
class CouponLife:
    """One coupon's calls step by step, and where it stands at their end."""

    user_id: str
    coupon_id: int
    steps: list[list[OrderCall]] = field(default_factory=list)
    ends: str = "unused"


def plan_orders(
    coupons: Sequence[tuple[str, int]], *, calls: int, seed: int, now: datetime, run: str
) -> list[CouponLife]:
    """Lives for ``coupons`` (user and number) of ``calls`` calls in all, or a few more; the same seed, the same lives.

    A life goes on with another story while its coupon is free and there are calls to make. ``run`` keeps the order
    numbers of two runs apart.
    """
    draw = random.Random(seed)
    lives = [CouponLife(user_id, coupon_id) for user_id, coupon_id in coupons]
    planned = 0
    open_lives = list(enumerate(lives))
    story = 0
    while planned < calls and open_lives:
        for number, life in open_lives:
            planned += _go_on(draw, life, number, f"{run}-{story}", now)
            story += 1
            if planned >= calls:
                break
        open_lives = [(number, life) for number, life in open_lives if life.ends == "unused"]
    return [life for life in lives if life.steps]


def rounds(lives: Sequence[CouponLife]) -> Iterator[list[OrderCall]]:
    """The calls that are under way at the same time: the next step of every life that has one."""
    for step in range(max((len(life.steps) for life in lives), default=0)):
        yield [call for life in lives if step < len(life.steps) for call in life.steps[step]]


def _go_on(draw: random.Random, life: CouponLife, number: int, order_no: str, now: datetime) -> int:
    """Add a story to a life; how many calls that are."""
    story = draw.choices(STORIES, [story.weight for story in STORIES])[0]
    calls = 0
    for step in story.steps(Buyer(life.user_id, str(life.coupon_id), order_no, now)):
        at_once: list[OrderCall] = []
        for name, target, body, allowed in step:
            call = OrderCall(number, len(life.steps), name, target, body, allowed)
            at_once += [call] * (2 if draw.random() < REPEAT_SHARE else 1)
            if draw.random() < WRONG_SHARE:
                at_once.append(call._replace(body={**body, "user_id": "no one"}, allowed=REFUSED))
        draw.shuffle(at_once)
        life.steps.append(at_once)
        calls += len(at_once)
    life.ends = story.ends
    return calls
