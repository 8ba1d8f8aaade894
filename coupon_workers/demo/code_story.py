"""Redeem codes: made, fetched once, exchanged by their owners; guessed at by many accounts on one device."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.table import Table
from sqlalchemy import text

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import snapshot
from coupon_workers.checking.report import Invariant
from coupon_workers.client.error import Conflict, Gone
from coupon_workers.codes.alphabet import ALPHABET, VALUE
from coupon_workers.codes.check_digit import check_value
from coupon_workers.demo.guarded_crowd import FARM_DEVICE, FARM_IP
from coupon_workers.demo.stage import LOOK_EVERY_S, Stage
from coupon_workers.demo.traffic import StoreAnswer, StoreCall, Traffic
from coupon_workers.runtime.services import Services

RULE = "codes_as_told"
PREFIX = "DEMO"
LENGTH = 12
CODES_A_STEP, OWNERS_A_STEP, STRANGERS_A_STEP, GUESSERS_A_STEP = 40, 30, 5, 50
GUESSES = 2
"""Of each account. Together they may guess no more than one device may."""

AGAIN_SHARE, TYPO_SHARE = 0.2, 0.1
TARGET = "/v1/codes/exchange"
OWNER, AGAIN, TYPO, STRANGER, GUESSER = (
    "owners",
    "owners again",
    "owners, mistyped",
    "strangers, a used code",
    "guesses",
)

_OWNERS = text("SELECT user_id, coupon_id FROM coupon WHERE template_id = :template_id ORDER BY user_id")


class CodeStory:
    """Owners exchange what they have; strangers try codes that are used; a farm guesses."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._draw = random.Random(stage.seed)
        self._codes: list[str] = []
        self._fetched_again = ""
        self._template_id = ""
        self._heard: list[StoreAnswer] = []

    def prepare(self) -> None:
        """A batch of codes, generated and fetched; a second fetch is tried."""
        stage, quantity = self._stage, CODES_A_STEP * self._stage.scale
        self._template_id = stage.open_template("codes", type="cash", amount=500, total_quantity=quantity)
        batch = stage.client.codes.generate(self._template_id, quantity, prefix=PREFIX, length=LENGTH)
        stage.wait_for(
            f"{quantity} codes are not generated",
            lambda: stage.client.codes.read(batch["code_batch_id"])["status"] == "done",
        )
        self._codes = stage.client.codes.fetch(batch["code_batch_id"]).split()[1:]  # behind the heading
        self._fetched_again = self._second_fetch(batch["code_batch_id"])

    def play(self, traffic: Traffic) -> None:
        """Owners and guessers at the same time; then, codes being used, owners again and strangers."""
        calls = [*self._owners(), *self._guesses()]
        self._draw.shuffle(calls)
        self._heard = traffic.send(calls)
        used = [each.call for each in self._heard if each.call.who == OWNER and each.status == 200]
        again = [call._replace(who=AGAIN) for call in used if self._draw.random() < AGAIN_SHARE]
        self._heard += traffic.send([*again, *self._strangers(used)])

    def end(self) -> None:
        """Nothing: an exchange is done when it is answered."""

    @property
    def unused(self) -> list[str]:
        """Codes that no owner has."""
        return self._codes[OWNERS_A_STEP * self._stage.scale :]

    def rules(self) -> tuple[Invariant, ...]:
        """A code has one coupon, its owner's."""
        says = "a code has one coupon, the one its owner was told of; no guess and no stranger has any"
        return (Invariant(RULE, says, self._untold),)

    def tables(self) -> list[Table]:
        """Codes and what became of each kind of try."""
        table = Table(title="Redeem codes", title_justify="left")
        table.add_column("tries of")
        table.add_column("answer")
        table.add_column("count", justify="right")
        table.add_row("operator", "generated and fetched", f"{len(self._codes):,}")
        table.add_row("operator", f"fetched again: {self._fetched_again or 'a file'}", "1")
        table.add_section()
        for (who, answer), count in sorted(Counter(map(_outcome, self._heard)).items()):
            table.add_row(who, answer, f"{count:,}", style="red" if who in (STRANGER, GUESSER) else None)
        table.add_row("guesses", "coupons won", f"{self._won_by_guessing():,}", style="red")
        return [table]

    def _second_fetch(self, code_batch_id: str) -> str:
        """The code of its refusal. The server deletes the texts a moment after it has sent the last of them."""
        while True:
            try:
                self._stage.client.codes.fetch(code_batch_id)
            except Gone as refusal:
                return refusal.code
            except Conflict as refusal:
                if refusal.code != "FETCH_IN_PROGRESS":
                    raise
                time.sleep(LOOK_EVERY_S)
            else:
                return ""

    def _owners(self) -> Iterator[StoreCall]:
        for number in range(OWNERS_A_STEP * self._stage.scale):
            owner = f"c{number}"
            if self._draw.random() < TYPO_SHARE:
                yield self._call(TYPO, owner, self._wrong_code(), "typo")
            yield self._call(OWNER, owner, self._codes[number], "own")

    def _guesses(self) -> Iterator[StoreCall]:
        for number in range(GUESSERS_A_STEP * self._stage.scale):
            for guess in range(GUESSES):
                yield self._call(GUESSER, f"device-farm-{number}", self._wrong_code(), f"guess-{guess}")

    def _strangers(self, used: list[StoreCall]) -> list[StoreCall]:
        count = min(STRANGERS_A_STEP * self._stage.scale, len(used))
        calls = self._draw.sample(used, count)
        return [self._call(STRANGER, f"stranger-{n}", call.body["code"], "used") for n, call in enumerate(calls)]

    def _call(self, who: str, user_id: str, code: str, request: str) -> StoreCall:
        body: dict[str, Any] = {"code": code, "user_id": user_id, "request_id": f"{self._stage.run}-{request}"}
        if who == GUESSER:
            body |= {"device_id": FARM_DEVICE, "ip": FARM_IP}
        else:
            body |= {"device_id": f"phone-{user_id}"}
        return StoreCall(who, TARGET, body)

    def _wrong_code(self) -> str:
        """One that looks right, down to its check digit: only the database knows that it is not."""
        characters = "".join(self._draw.choices(ALPHABET, k=LENGTH - 1))
        return PREFIX + characters + ALPHABET[check_value(bytes(VALUE[character] for character in characters))]

    def _untold(self, services: Services) -> list[Breach]:
        told = {each.call.body["user_id"]: int(each.body["coupon_no"]) for each in self._heard if each.status == 200}
        with snapshot(services) as connection:
            rows = connection.execute(_OWNERS, {"template_id": int(self._template_id)})
            found = [(row.user_id, row.coupon_id) for row in rows]
        owners = {call.call.body["user_id"] for call in self._heard if call.call.who == OWNER}
        expected = sorted((user_id, told[user_id]) for user_id in told)
        if expected == sorted(found) and owners == set(told):
            return []
        return [Breach(RULE, f"template {self._template_id}", f"a coupon for each of {len(owners)}", f"{len(found)}")]

    def _won_by_guessing(self) -> int:
        return sum(each.status == 200 for each in self._heard if each.call.who in (GUESSER, STRANGER))


def _outcome(heard: StoreAnswer) -> tuple[str, str]:
    if heard.status == 200:
        return heard.call.who, "the same coupon" if heard.body["replayed"] else "coupon"
    return heard.call.who, heard.code or "never answered"
