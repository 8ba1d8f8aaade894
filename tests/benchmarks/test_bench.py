"""The bench at a tiny scale: every peer does its work, every row is measured and judged. The numbers say nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.environment import environment
from bench.generator import answer_length
from bench.record import write_record
from bench.row import Comparison, Numbers, Row, RowResult
from bench.rows import ROWS
from bench.run import run_row
from bench.scale import Scale
from bench.stage import Stage
from bench.table import busy_warning, side_table, verdict_table
from bench.verdict import judge
from coupon_workers.runtime.clock import utc_now

TINY = Scale(
    rounds=1,
    rehearsals=0,
    peak_runs=1,
    connections=4,
    load_s=0.3,
    short_rounds=1,
    short_load_s=0.3,
    drain_claims=1_200,
    message_claims=30,
    latency_s=1.0,
    few_outstanding=100,
    many_outstanding=2_000,
    outstanding_claims=100,
    few_users=100,
    many_users=2_000,
    beside_users=100_000,
    expired_coupons=2_500,
    expired_beside=3_000,
    reconciled_coupons=2_000,
    many_offers=25,
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Durable servers of the bench's own."""
    pytest.importorskip("celery", reason="the bench extra is not installed")
    with Stage(tmp_path_factory.mktemp("bench"), TINY) as started:
        yield started


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_measured_judged_and_written_down(stage: Stage, name: str, tmp_path: Path) -> None:
    """Every side does the whole work in every round, and every comparison gets its ratio."""
    result = run_row(stage, ROWS[name], lambda step: None)

    write_record(tmp_path / "out" / "bench.json", utc_now(), environment(stage), TINY, [result])
    record = json.loads((tmp_path / "out" / "bench.json").read_text(encoding="utf-8"))

    assert None is result.failure
    assert TINY.rounds == len(result.rounds)
    assert len(ROWS[name].comparisons) == len(record["rows"][0]["comparisons"])
    assert all(value >= 0 for shown in result.rounds[0].values() for value in shown.values())
    assert verdict_table([result]).row_count >= len(ROWS[name].comparisons)
    assert side_table([result]).row_count > 0


def _result(ours: list[float], peer: list[float]) -> RowResult:
    row = Row("any", "", (), lambda stage: NotImplemented)
    rounds: list[dict[str, Numbers]] = [
        {"a": {"n": mine}, "b": {"n": theirs}} for mine, theirs in zip(ours, peer, strict=True)
    ]
    return RowResult(row, load_average=0.0, rounds=rounds)


def test_a_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    """A machine that halves its speed for one round changes both sides of it and no ratio."""
    result = _result([70.0, 35.0, 80.0], [100.0, 50.0, 100.0])

    verdict = judge(result, Comparison("w", "p", "n", "a", "b", owed=0.65))

    assert verdict is not None
    assert (0.7, 0.7, 0.8, True) == (verdict.ratio, verdict.lowest, verdict.highest, verdict.reached)


def test_what_must_not_exceed_a_constant_is_reached_below_it() -> None:
    """A latency against the clock."""
    comparison = Comparison("w", "the clock", "n", "a", constant=1_000.0, owed=1.0, sense="at most")

    verdicts = [judge(_result([value], [1.0]), comparison) for value in (400.0, 1_200.0)]

    assert [True, False] == [verdict is not None and verdict.reached for verdict in verdicts]


def test_a_comparison_without_rounds_has_no_verdict() -> None:
    """A row that broke is told as not run."""
    assert None is judge(_result([], []), Comparison("w", "p", "n", "a", "b", owed=1.0))


def test_a_busy_machine_is_told() -> None:
    """Numbers made beside other work are marked."""
    busy = RowResult(Row("any", "", (), lambda stage: NotImplemented), load_average=10_000.0)

    assert None is busy_warning([_result([1.0], [1.0])])
    assert "do not trust" in (busy_warning([busy]) or "")


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_an_answer_is_whole_when_its_length_is_there(parts: int) -> None:
    """However a server cuts head and body apart, an answer is counted once, at its end."""
    answer = b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\nContent-Length:  7\r\n\r\n{'a':1}"
    size = -(-len(answer) // parts)

    whole_at = [
        end for end in range(size, len(answer) + size, size) if 0 < answer_length(answer[:end]) <= len(answer[:end])
    ]

    assert [parts * size] == whole_at
    assert len(answer) == answer_length(answer)
