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
    "LOTTERY_CHANGED": N_("Somebody else changed it since you loaded this page. What you typed is still here."),
    "LOTTERY_BUSY": N_("Its draws are being settled at this moment. Try again."),
    "ABOVE_BUDGET": N_("So many coupons may cost more than the budget. Make another lottery: two people decide on it."),
    "OWN_LOTTERY": N_("Another person approves: your key made it."),
}
