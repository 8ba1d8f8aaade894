"""One lottery as it runs: prize by prize, who has drawn what, and what may be done with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.claiming.claim_request import user_id_problem
from coupon_workers.errors import NotFound
from coupon_workers.lottery import lottery_control as control
from coupon_workers.lottery import lottery_reading as reading
from coupon_workers.lottery.lottery import OVER, LotteryStatus
from coupon_workers.lottery.lottery_change import CHANGES
from coupon_workers.lottery.lottery_reading import LotteryAnswer, PrizeAnswer, SettledDraw
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_name import read_names
from web.console.blueprint import console
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.notice import done
from web.console.progress import progress
from web.console.rendering import environment, render
from web.console.show import number, observed
from web.context import principal, services
from web.path_id import path_id

Act = Callable[[Services, int, str], Any]

ACTS: dict[str, tuple[Act, str]] = {
    "approve": (control.approve_lottery, "lottery_approved"),
    "pause": (lambda services, lottery_id, _: control.pause_lottery(services, lottery_id), "lottery_paused"),
    "resume": (lambda services, lottery_id, _: control.resume_lottery(services, lottery_id), "lottery_resumed"),
    "end": (control.end_lottery, "lottery_ended"),
}
"""What one press does, and the notice of it."""

MAY = {
    "change": CHANGES,
    "pause": {LotteryStatus.SCHEDULED, LotteryStatus.ACTIVE},
    "resume": {LotteryStatus.PAUSED},
    "end": set(LotteryStatus) - OVER,
}


@console.get("/lotteries/<lottery_id>")
@shown_to(Scope.ADMIN)
def lottery(lottery_id: str) -> Any:
    """The report, and the draws of all or of ``?user_id=``; the newest move."""
    number = _number(lottery_id)
    found = reading.read_one(services(), number)
    user_id = request.args.get("user_id", "").strip()
    listing = _draws(number, user_id)
    return render(
        "lottery.html",
        lottery=found,
        moving=_moving(found),
        names=read_names(services(), [prize.template_id for prize in found.prizes if prize.template_id]),
        may={name for name, statuses in MAY.items() if found.status in statuses},
        waits=found.status is LotteryStatus.PENDING_APPROVAL,
        mine=found.created_by == principal().key_id,
        coupons=sum(prize.stock for prize in found.prizes if prize.template_id),
        user_id=user_id,
        listing=listing,
        draws=listing.items,
        lottery_id=lottery_id,
    )


@console.get("/data/lotteries/<lottery_id>")
@shown_to(Scope.ADMIN)
def lottery_data(lottery_id: str) -> dict[str, Any]:
    """What of it moves: counts, and the rows of the newest draws as the page has them."""
    number = _number(lottery_id)
    rows = environment().get_template("lottery_draws.html")
    shown = {"draws": _draws(number, request.args.get("user_id", "")).items, "lottery_id": lottery_id}
    return _moving(reading.read_one(services(), number)) | {"rows": rows.render(shown)}


@console.post("/lotteries/<lottery_id>/act")
@shown_to(Scope.ADMIN)
def act_on_lottery(lottery_id: str) -> Any:
    """Approve, pause, resume, end."""
    number, name = _number(lottery_id), request.form.get("act", "")
    if name not in ACTS:
        raise NotFound("NOT_FOUND", f"there is no act {name}")
    act, notice = ACTS[name]
    act(services(), number, principal().key_id)
    return done(url_for("console.lottery", lottery_id=number), notice)


def _number(lottery_id: str) -> int:
    return path_id(lottery_id, "LOTTERY_NOT_FOUND")


def _draws(lottery_id: int, user_id: str) -> Listing[SettledDraw]:
    if user_id and user_id_problem(user_id):
        return Listing([], lambda draw: [int(draw.draw_id)])
    before = page_before()
    found = reading.read_draws(services(), lottery_id, limit=PAGE_SIZE + 1, before=before, user_id=user_id or None)
    return Listing(found, lambda draw: [int(draw.draw_id)])


def _moving(lottery: LotteryAnswer) -> dict[str, Any]:
    issued = sum(prize.issued for prize in lottery.prizes)
    texts = {
        "draws": number(lottery.draws),
        "rejected": number(lottery.rejected),
        "percent": gettext("%s coupons won") % number(issued),
    }
    for prize in lottery.prizes:
        texts |= _of_prize(prize)
    parts = {"coupons": issued, "others": lottery.draws - lottery.none - issued, "none": lottery.none}
    over = lottery.status is LotteryStatus.ENDED
    return progress(lottery.status.value, over, lottery.draws, parts, texts)


def _of_prize(prize: PrizeAnswer) -> dict[str, str]:
    return {
        f"drawn-{prize.prize_no}": number(prize.drawn),
        f"left-{prize.prize_no}": number(prize.left),
        f"came-{prize.prize_no}": observed(prize.observed_odds),
    }
