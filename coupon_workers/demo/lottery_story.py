"""A lottery: draws of a crowd, prizes that run out, and the report at its end."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from rich.table import Table

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.report import Invariant
from coupon_workers.client.lottery_answer import LotteryAnswer
from coupon_workers.demo.stage import Stage
from coupon_workers.demo.traffic import StoreAnswer, StoreCall, Traffic
from coupon_workers.runtime.services import Services

RULE = "draws_as_told"
DRAWERS_A_STEP = 100
WISHES, LIMIT = 3, 2
"""Each wants three draws and may have two."""

RETRY_SHARE = 0.1
MILLION = 1_000_000
GRAND, SMALL, CARD = 10_000, 190_000, 300_000
"""Weights. Of the small prize there is less than its odds would give: it runs out."""


class LotteryStory:
    """Prizes of two templates, one that is no coupon, and one chance in two to win nothing.

    ``plenty`` times as many coupons as the story wants, for whoever draws after its crowd: nothing runs out then.
    """

    def __init__(self, stage: Stage, plenty: int = 1) -> None:
        self._stage = stage
        self._grand_stock, self._small_stock = plenty * stage.scale, 20 * plenty * stage.scale
        self._lottery_id = ""
        self._heard: list[StoreAnswer] = []
        self._report: LotteryAnswer | None = None

    def prepare(self) -> None:
        """The templates of its prizes, then the lottery."""
        stage, scale = self._stage, self._stage.scale
        grand = stage.open_template("grand-prize", type="cash", amount=10_000, total_quantity=self._grand_stock)
        small = stage.open_template("small-prize", type="cash", amount=300, total_quantity=self._small_stock)
        prizes: list[dict[str, Any]] = [
            {"name": "a hundred off", "weight": GRAND, "template_id": grand, "stock": self._grand_stock},
            {"name": "three off", "weight": SMALL, "template_id": small, "stock": self._small_stock},
            {"name": "a greeting card", "weight": CARD, "template_id": None, "stock": 200 * scale},
            {"name": "better luck next time", "weight": MILLION - GRAND - SMALL - CARD, "stock": 1_000 * scale},
        ]
        body = {"name": f"{stage.run} wheel", "start": stage.opened, "end": self._stage.closes}
        made = stage.client.lotteries.create(body | {"prizes": prizes, "per_user_limit": LIMIT})
        self._lottery_id = made["lottery_id"]

    def play(self, traffic: Traffic) -> None:
        """The draws, some of them sent twice."""
        draw = random.Random(self._stage.seed)
        target = f"/v1/lotteries/{self._lottery_id}/draws"
        calls = [
            StoreCall("draw", target, {"user_id": f"l{user}", "request_id": f"{self._stage.run}-draw-{wish}"})
            for user in range(DRAWERS_A_STEP * self._stage.scale)
            for wish in range(WISHES)
        ]
        calls += [call for call in calls if draw.random() < RETRY_SHARE]
        draw.shuffle(calls)
        self._heard = traffic.send(calls)

    def end(self) -> None:
        """End it, and wait for its report: what waits is settled, what is left goes back."""
        lotteries = self._stage.client.lotteries
        lotteries.end(self._lottery_id)
        self._stage.wait_for("the lottery has not ended", lambda: lotteries.read(self._lottery_id)["status"] == "ended")
        self._report = lotteries.read(self._lottery_id)

    def rules(self) -> tuple[Invariant, ...]:
        """What was told is what was settled."""
        return (Invariant(RULE, "each draw was settled with the prize that its user was told, once", self._untold),)

    def tables(self) -> list[Table]:
        """The report, prize by prize."""
        report = self._report
        table = Table(title="A lottery", title_justify="left")
        for column in ("prize", "odds", "drawn at", "stock", "drawn", "left"):
            table.add_column(column, justify="left" if column == "prize" else "right")
        if report is None:
            return [table]
        for prize in report["prizes"]:
            observed = prize["observed_odds"]
            odds = f"{prize['expected_odds']:.1%}", "-" if observed is None else f"{observed:.1%}"
            counts = (prize["stock"], prize["drawn"], prize["left"])
            table.add_row(prize["name"], *odds, *(f"{count:,}" for count in counts))
        table.add_row("none: what was drawn had run out", "", "", "", f"{report['none']:,}", "")
        table.add_section()
        table.add_row("draws", "", "", "", f"{report['draws']:,}", "")
        codes = Counter(each.code or "never answered" for each in self._heard if each.status != 200)
        for code, count in codes.most_common():
            table.add_row(f"refused {code}", "", "", "", f"{count:,}", "")
        return [table]

    def told(self) -> dict[str, tuple[str, str]]:
        """Draws by their number: whose, and what was told."""
        return {
            each.body["draw_id"]: (each.body["user_id"], each.body["prize"])
            for each in self._heard
            if each.status in (200, 202)
        }

    def _untold(self, services: Services) -> list[Breach]:
        settled = {
            draw["draw_id"]: (draw["user_id"], draw["prize"])
            for draw in self._stage.client.lotteries.draws(self._lottery_id)
        }
        told = self.told()
        differing = [number for number in told.keys() | settled.keys() if told.get(number) != settled.get(number)]
        return [Breach(RULE, f"draw {n}", f"{told.get(n)}", f"{settled.get(n)}") for n in sorted(differing)]
