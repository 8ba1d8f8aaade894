"""Lotteries: made and watched by operators, drawn from by storefronts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from coupon_workers.client.caller import Caller, segment
from coupon_workers.client.lottery_answer import DrawAnswer, LotteryAnswer, SettledDraw


class Lotteries:
    """Scope ``admin``; ``draw`` is for ``storefront``. Each write takes an ``idempotency_key``, or makes one."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, body: Mapping[str, Any], *, idempotency_key: str | None = None) -> LotteryAnswer:
        """A lottery; the API guide has the fields."""
        return cast("LotteryAnswer", self._caller.write("POST", _ALL, body, idempotency_key=idempotency_key))

    def every(self) -> Iterator[LotteryAnswer]:
        """All lotteries, newest first."""
        return self._caller.every(_ALL)

    def read(self, lottery_id: str) -> LotteryAnswer:
        """How a lottery stands, prize by prize."""
        return cast("LotteryAnswer", self._caller.read(_one(lottery_id)))

    def change(self, lottery_id: str, body: Mapping[str, Any], *, idempotency_key: str | None = None) -> LotteryAnswer:
        """Change its name, weights or stock while nobody draws; ``body`` names the ``version`` that was read."""
        answer = self._caller.write("PATCH", _one(lottery_id), body, idempotency_key=idempotency_key)
        return cast("LotteryAnswer", answer)

    def approve(self, lottery_id: str, *, idempotency_key: str | None = None) -> LotteryAnswer:
        """Open a lottery that waits for it."""
        return self._act(lottery_id, "approve", idempotency_key)

    def pause(self, lottery_id: str, *, idempotency_key: str | None = None) -> LotteryAnswer:
        """Nobody draws until it is resumed."""
        return self._act(lottery_id, "pause", idempotency_key)

    def resume(self, lottery_id: str, *, idempotency_key: str | None = None) -> LotteryAnswer:
        """Draws are accepted again."""
        return self._act(lottery_id, "resume", idempotency_key)

    def end(self, lottery_id: str, *, idempotency_key: str | None = None) -> LotteryAnswer:
        """End it for good; what is left of its stock goes back."""
        return self._act(lottery_id, "end", idempotency_key)

    def draws(self, lottery_id: str, *, user_id: str | None = None) -> Iterator[SettledDraw]:
        """Settled draws, newest first."""
        return self._caller.every(f"{_one(lottery_id)}/draws", {"user_id": user_id})

    def draw(self, lottery_id: str, user_id: str, request_id: str) -> DrawAnswer:
        """Draw. ``request_id`` makes it one draw of this user, with one prize, for good."""
        body = {"user_id": user_id, "request_id": request_id}
        return cast("DrawAnswer", self._caller.write_numbered(f"{_one(lottery_id)}/draws", body, request_id))

    def _act(self, lottery_id: str, action: str, idempotency_key: str | None) -> LotteryAnswer:
        answer = self._caller.write("POST", f"{_one(lottery_id)}/{action}", idempotency_key=idempotency_key)
        return cast("LotteryAnswer", answer)


_ALL = "/v1/lotteries"


def _one(lottery_id: str) -> str:
    return f"{_ALL}/{segment(lottery_id)}"
