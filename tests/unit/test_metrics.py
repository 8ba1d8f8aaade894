"""The counts that hot paths leave are the counts that Prometheus reads."""

from __future__ import annotations

import re

from prometheus_client import CollectorRegistry, Histogram, generate_latest

from coupon_workers.runtime import metrics


def _value(exposition: bytes, series: str) -> float:
    match = re.search(rf"^{re.escape(series)} (\S+)$", exposition.decode(), re.MULTILINE)
    return float(match[1]) if match else 0.0


def test_claims_are_counted_by_outcome() -> None:
    """One at a time or many at once."""
    series = 'coupon_claims_total{outcome="SOLD_OUT"}'
    before = _value(metrics.exposition(), series)

    metrics.count_claim((7, "SOLD_OUT"))
    metrics.count_claims([(7, "SOLD_OUT"), (7, "ACCEPTED"), (8, "SOLD_OUT")])

    assert before + 3 == _value(metrics.exposition(), series)


def test_claims_are_taken_once_by_template() -> None:
    """For the live view; Prometheus' own counts stay."""
    metrics.take_claims()
    metrics.count_claims([(7, "SOLD_OUT"), (7, "SOLD_OUT"), (8, "ACCEPTED")])

    assert {(7, "SOLD_OUT"): 2, (8, "ACCEPTED"): 1} == metrics.take_claims()
    assert {} == metrics.take_claims()


def test_counting_in_bulk_equals_counting_one_by_one() -> None:
    """The library has no call for many observations at once; ours must do what many calls would."""
    values = [0.0, 0.001, 0.0011, 0.3, 0.3, 10.0, 11.0, 250.0]
    registry = CollectorRegistry()
    one_by_one = Histogram("t", "t", ["endpoint"], buckets=metrics.BUCKETS_S, registry=registry).labels("e")
    for value in values:
        one_by_one.observe(value)
    in_bulk_registry = CollectorRegistry()
    in_bulk = Histogram("t", "t", ["endpoint"], buckets=metrics.BUCKETS_S, registry=in_bulk_registry).labels("e")

    metrics._observe_all(in_bulk, values)

    def lines(registry: CollectorRegistry) -> list[str]:
        return [line for line in generate_latest(registry).decode().splitlines() if "created" not in line]

    assert lines(registry) == lines(in_bulk_registry)


def test_requests_are_timed_by_endpoint() -> None:
    """A time lands in its bucket and in all above."""
    metrics.observe_request(("GET /made-up", 0.02))
    exposition = metrics.exposition()

    assert 0.0 == _value(exposition, 'coupon_request_seconds_bucket{endpoint="GET /made-up",le="0.01"}')
    assert 1.0 == _value(exposition, 'coupon_request_seconds_bucket{endpoint="GET /made-up",le="0.025"}')
    assert 1.0 == _value(exposition, 'coupon_request_seconds_count{endpoint="GET /made-up"}')


def test_the_claim_script_is_timed_apart_from_requests() -> None:
    """In finer buckets: it takes a fraction of a millisecond."""
    metrics.observe_script(("made-up", 0.0002))
    exposition = metrics.exposition()

    assert 0.0 == _value(exposition, 'coupon_claim_script_seconds_bucket{call="made-up",le="0.0001"}')
    assert 1.0 == _value(exposition, 'coupon_claim_script_seconds_bucket{call="made-up",le="0.00025"}')
    assert 1.0 == _value(exposition, 'coupon_claim_script_seconds_bucket{call="made-up",le="+Inf"}')
