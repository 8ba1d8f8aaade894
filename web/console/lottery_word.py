"""Words of lotteries."""

from __future__ import annotations

from web.console.language import N_

LOTTERY_WORDS = {
    "ending": N_("ending"),
    "none": N_("nothing"),
}

LOTTERY_TONES = {"wait": ("ending",)}

LOTTERY_REASONS = {
    "LOTTERY_NOT_FOUND": N_("There is no such lottery."),
    "OWN_LOTTERY": N_("Another person approves: your key made it."),
}
