"""Make a receipts CSV for ``coupon-workers replay``: invented rows with the shape of a real month of receipts.

    python bench/receipts.py receipts.csv --rows 113640 --seed 1

The shape was measured on 113,640 receipts of a July: 2,050 coupons of very uneven popularity (the hottest has 26 % of
all rows, seven have 61 %, half of the coupons have seven rows or fewer), 76,309 users of whom most come once, and
repeats by the same user that are rare for the hot coupons and every sixth row for the others.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

COLUMNS = ("User_id", "Merchant_id", "Coupon_id", "Discount_rate", "Distance", "Date_received")
MEASURED_ROWS = 113_640

POPULARITY = (
    # (rank of a coupon, its rows); between two ranks the rows follow a power of the rank
    *((1, 29_885), (2, 11_586), (3, 7_370), (4, 6_401), (5, 5_339), (6, 4_887), (7, 4_215), (8, 1_725), (10, 1_425)),
    *((12, 797), (15, 533), (20, 356), (30, 232), (50, 145), (100, 76), (200, 43), (300, 29), (500, 17), (700, 11)),
    *((1_000, 7), (1_300, 4), (1_500, 3), (1_800, 1), (2_050, 1)),
)
HOT_RANKS = 7
REPEAT_SHARE_HOT = 0.001
REPEAT_SHARE_COLD = 0.17
"""Parts of a coupon's rows that come from a user who has it already."""

SAME_DAY_SHARE = 0.11
"""Part of those that come on the same day, so that the row is the same."""

NEW_USER_SHARE = 0.67
"""Part of the first receipts of a coupon that come from a user nobody has seen yet; the others come again, the more
often the more often they came."""

DISTANCES = {"0": 386, "1": 163, "2": 84, "3": 52, "4": 35, "5": 26, "6": 19, "7": 15, "8": 12, "9": 11, "10": 91}
DISTANCES["null"] = 106
RATES = {"20:1": 531, "30:1": 212, "10:1": 196, "30:5": 168, "0.95": 156, "100:10": 131, "50:5": 128, "20:5": 80}
RATES |= {"100:20": 75, "0.9": 40, "200:20": 37, "50:10": 34, "50:1": 32, "100:5": 30, "5:1": 24, "150:20": 19}
RATES |= {"0.8": 11, "100:50": 11, "200:50": 7, "300:30": 5, "0.5": 1, "500:30": 1}
HOT_RATES = ("30:5", "50:10", "20:5", "200:20", "100:10")
MONTH = "201607"
DAYS = 31


class Coupon(NamedTuple):
    """A coupon with the number of its rows."""

    coupon_id: int
    merchant_id: int
    discount_rate: str
    rows: int
    repeat_share: float


def rows_by_rank(total: int) -> list[int]:
    """How many rows the coupon of each rank has, hottest first; they sum to ``total``."""
    shape = [_measured_rows(rank) for rank in range(1, POPULARITY[-1][0] + 1)]
    scale = total / sum(shape)
    sizes = [size for rows in shape if (size := round(rows * scale)) > 0] or [total]
    sizes[0] += total - sum(sizes)
    if sizes[0] < 1:  # so few rows that rounding alone exceeds them
        return [1] * total
    return sizes


def _measured_rows(rank: int) -> float:
    for (low, low_rows), (high, high_rows) in pairwise(POPULARITY):
        if low <= rank <= high:
            part = math.log(rank / low) / math.log(high / low)
            return math.exp(math.log(low_rows) * (1 - part) + math.log(high_rows) * part)
    raise ValueError(f"no coupon has rank {rank}")


def receipts(total: int, seed: int) -> Iterator[tuple[str, ...]]:
    """``total`` rows in the order of ``COLUMNS``, a user's rows standing together."""
    draw = random.Random(seed)
    by_user: dict[int, list[Coupon]] = {}
    receivers: list[int] = []
    for coupon in _coupons(draw, total):
        holders: dict[int, None] = {}
        for _ in range(coupon.rows):
            user_id = _receiver(draw, receivers, holders, coupon.repeat_share, total)
            by_user.setdefault(user_id, []).append(coupon)
    users = list(by_user)
    draw.shuffle(users)
    for user_id in users:
        yield from _rows_of(draw, user_id, by_user[user_id])


def _rows_of(draw: random.Random, user_id: int, coupons: list[Coupon]) -> Iterator[tuple[str, ...]]:
    days: dict[int, tuple[str, str]] = {}
    for coupon in coupons:
        if coupon.coupon_id not in days or draw.random() >= SAME_DAY_SHARE:
            distance = draw.choices(list(DISTANCES), list(DISTANCES.values()))[0]
            days[coupon.coupon_id] = distance, f"{MONTH}{draw.randint(1, DAYS):02d}"
        row = (user_id, coupon.merchant_id, coupon.coupon_id, coupon.discount_rate, *days[coupon.coupon_id])
        yield tuple(map(str, row))


def _coupons(draw: random.Random, total: int) -> list[Coupon]:
    sizes = rows_by_rank(total)
    coupon_ids = draw.sample(range(1, 14_046 + len(sizes)), len(sizes))
    merchants = [draw.randrange(1, 8_857) for _ in range(max(1, len(sizes) * 3 // 4))]
    coupons = []
    for rank, (coupon_id, rows) in enumerate(zip(coupon_ids, sizes, strict=True), start=1):
        hot = rank <= HOT_RANKS
        rate = draw.choice(HOT_RATES) if hot else draw.choices(list(RATES), list(RATES.values()))[0]
        repeat_share = REPEAT_SHARE_HOT if hot else REPEAT_SHARE_COLD
        coupons.append(Coupon(coupon_id, draw.choice(merchants), rate, rows, repeat_share))
    draw.shuffle(coupons)
    return coupons


def _receiver(
    draw: random.Random, receivers: list[int], holders: dict[int, None], repeat_share: float, total: int
) -> int:
    """The user of one more row: a holder again, a user of other coupons, or a new one."""
    if holders and draw.random() < repeat_share:
        return draw.choice(list(holders)[-100:])
    user_id = draw.choice(receivers) if receivers and draw.random() >= NEW_USER_SHARE else 0
    while user_id == 0 or user_id in holders:
        user_id = draw.randrange(1, 65 * total + 1)
    receivers.append(user_id)
    holders[user_id] = None
    return user_id


def write_receipts(path: Path, total: int, seed: int) -> None:
    """Write a file of ``total`` receipts; the same seed gives the same file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(receipts(total, seed))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Make a receipts CSV for `coupon-workers replay`.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=MEASURED_ROWS)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.rows < 1:
        parser.error("--rows must be at least 1")
    write_receipts(asked.path, asked.rows, asked.seed)
    print(f"{asked.path}: {asked.rows} receipts")


if __name__ == "__main__":
    main()
