"""Every Redis key of lotteries; those of one share the hash tag ``{l<id>}``."""

from __future__ import annotations

from dataclasses import dataclass

from coupon_workers.runtime.gate_keys import GateKeys


@dataclass(frozen=True, slots=True)
class LotteryKeys(GateKeys):
    """The keys of one lottery, as ``lua/draw.lua`` says what they hold."""

    lottery_id: int

    @property
    def tag(self) -> str:
        """``l`` and the lottery's id."""
        return f"l{self.lottery_id}"
