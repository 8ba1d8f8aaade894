"""The generator of receipts: invented rows with the measured shape."""

from __future__ import annotations

import csv
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from coupon_workers.load.receipt_plan import plan_receipts

PROGRAM = Path(__file__).parents[2] / "bench" / "receipts.py"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """``bench/receipts.py``, which is a program and no package."""
    spec = importlib.util.spec_from_file_location("bench_receipts", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("total", [1, 2, 50, 2_050, 10_000, 113_640, 200_000])
def test_the_rows_of_all_coupons_sum_to_the_total(generator: ModuleType, total: int) -> None:
    """However many rows are asked for, each coupon has at least one and the hottest has most."""
    sizes = generator.rows_by_rank(total)

    assert total == sum(sizes)
    assert min(sizes) >= 1
    assert max(sizes) == sizes[0]


def test_a_full_file_has_the_measured_shape(generator: ModuleType, tmp_path: Path) -> None:
    """2,050 coupons, the hottest with 26 % of the rows, about 76,000 users, few equal rows; all of it readable."""
    path = tmp_path / "receipts.csv"

    generator.write_receipts(path, 113_640, 1)

    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    coupons = Counter(row["Coupon_id"] for row in rows)
    users = {row["User_id"] for row in rows}
    pairs = {(row["User_id"], row["Coupon_id"]) for row in rows}
    equal = len(rows) - len({tuple(row.values()) for row in rows})
    plan = plan_receipts(path, stock=100, limit=1)
    assert (113_640, 2_050) == (len(rows), len(coupons))
    assert coupons.most_common(1)[0][1] == pytest.approx(0.263 * 113_640, rel=0.02)
    assert len(users) == pytest.approx(76_309, rel=0.02)
    assert len(pairs) == pytest.approx(105_958, rel=0.02)
    assert equal == pytest.approx(837, rel=0.3)
    assert (113_640, 0) == (plan.count.read, plan.count.bad.total())


def test_a_seed_gives_the_same_rows(generator: ModuleType) -> None:
    """And another seed gives others."""
    first, again, other = (list(generator.receipts(500, seed)) for seed in (1, 1, 2))

    assert first == again
    assert first != other
