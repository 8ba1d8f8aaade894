"""``POST /v1/claims`` under a risk policy of five rules against the same claims without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from bench.claim_view_row import answer_numbers, check_accepted
from bench.front import OURS, Front, serving
from bench.row import Comparison, Numbers, Row, Sides
from bench.sale import open_sale
from bench.stage import Stage
from coupon_workers.risk.policy import RiskPolicyBody
from coupon_workers.risk.policy_desk import put_policy

NONE = "no policy"
FIVE = "five rules"

POLICY = RiskPolicyBody.model_validate(
    {
        "rules": [
            {"name": "device", "dimension": "device", "measure": "claims", "window_s": 60, "threshold": 10_000},
            {"name": "shared", "dimension": "device", "measure": "distinct_users", "window_s": 600, "threshold": 9_000},
            {"name": "net", "dimension": "ip", "measure": "claims", "window_s": 60, "threshold": 10_000_000},
            {
                "name": "worth",
                "dimension": "address",
                "measure": "face_value_minor",
                "window_s": 600,
                "threshold": 10**12,
            },
            {"name": "user", "dimension": "user", "measure": "claims", "window_s": 60, "threshold": 10_000},
        ]
    }
)
"""Each counts every claim, by every dimension and measure, and none fires."""


@contextmanager
def _open(stage: Stage) -> Iterator[Sides]:
    with serving(stage, OURS) as ours:
        yield {NONE: partial(_load, ours, None), FIVE: partial(_load, ours, "bench")}


def _load(front: Front, policy: str | None) -> Numbers:
    """Nothing is settled: what is accepted stays in the stream, and the bells in the broker."""
    stage = front.stage
    stage.world.clear()
    stage.flush_broker()
    if policy is not None:
        put_policy(stage.world.services, policy, POLICY, None)
    sale = open_sale(stage.world, risk_policy=policy)
    stage.world.wait_for_rewrite()
    redis = stage.world.services.redis
    redis.config_resetstat()
    pids = {"redis": stage.servers.pids()["redis"]}
    result, costs = front.load(sale.template_id, others=pids, kind="claim from", seconds=stage.scale.short_load_s)
    script_us = float(redis.info("commandstats")["cmdstat_evalsha"]["usec_per_call"])
    check_accepted(result, sale)
    return answer_numbers(result) | costs | {"script_us": script_us}


ROW = Row(
    "risk",
    "The same claims, with device, network and address of the post, of a template with a policy of five rules and of "
    "one without. Each rule counts every claim and none fires. The front alone, nothing is settled.",
    (
        Comparison(
            "claims a second under five rules", "the same without a policy", "claims_per_s", FIVE, NONE, owed=0.85
        ),
        Comparison(
            "CPU of Redis for a claim (µs)", "the same without a policy", "redis_us", FIVE, NONE, sense="at most"
        ),
        Comparison(
            "the script by Redis's own count (µs)",
            "the same without a policy",
            "script_us",
            FIVE,
            NONE,
            sense="at most",
        ),
    ),
    _open,
    short=True,
)
