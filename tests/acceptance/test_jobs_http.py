"""The table of jobs over HTTP, and a job that is run now."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from coupon_workers.runtime.task import sweep_gates
from coupon_workers.scheduling.job_table import TABLE
from coupon_workers.scheduling.scheduler import Scheduler
from tests.conftest import PostBox
from tests.support.http_caller import Caller
from tests.support.http_shop import Shop, rows_by_table


@pytest.fixture
def ops(shop: Shop) -> Caller:
    """An operator."""
    return shop.caller("ops")


def _job(ops: Caller, name: str) -> dict[str, Any]:
    [job] = [job for job in ops.ask("GET", "/v1/jobs").ok()["items"] if job["name"] == name]
    return dict(job)


def test_the_table_of_jobs_is_told(ops: Caller) -> None:
    """Every job, before a scheduler has run."""
    table = ops.ask("GET", "/v1/jobs").ok()

    assert [job.name for job in TABLE] == [job["name"] for job in table["items"]]
    assert table["next_cursor"] is None
    assert {None} == {job["last_run"] for job in table["items"]}
    assert "every 2 seconds" == table["items"][0]["trigger"]
    assert all(job["next_run_at"].endswith("Z") for job in table["items"])


def test_the_last_run_of_a_job_is_told(shop: Shop, ops: Caller, post: PostBox) -> None:
    """When it was meant to be, was written down, and was sent."""
    Scheduler(TABLE, shop.services.engine, post).tick()

    job = _job(ops, "sweep_gates")

    last = {name: datetime.fromisoformat(instant) for name, instant in job["last_run"].items()}
    assert last["logical_at"] <= last["recorded_at"] <= last["enqueued_at"]
    assert last["logical_at"] < datetime.fromisoformat(job["next_run_at"])


def test_a_job_is_run_now(ops: Caller, post: PostBox) -> None:
    """Beside its logical runs."""
    run = ops.ask("POST", "/v1/jobs/sweep_gates/run").ok(202)

    assert [sweep_gates()] == post.sent
    job = _job(ops, "sweep_gates")
    assert (None, run) == (job["last_run"], job["last_extra_run"])
    assert "sweep_gates" == run["job"]
    assert datetime.fromisoformat(run["recorded_at"]) <= datetime.fromisoformat(run["enqueued_at"])


def test_a_repeated_request_runs_it_once(ops: Caller, post: PostBox) -> None:
    """Under the same key; under another one, or none, it is another run."""
    first = ops.ask("POST", "/v1/jobs/sweep_gates/run", Idempotency_Key="k1")
    again = ops.ask("POST", "/v1/jobs/sweep_gates/run", Idempotency_Key="k1")
    other = ops.ask("POST", "/v1/jobs/sweep_gates/run", Idempotency_Key="k2")
    bare = ops.ask("POST", "/v1/jobs/sweep_gates/run")

    assert first.ok(202) == again.ok(202)
    assert "true" == again.headers["idempotency-replayed"]
    assert 3 == len({first.ok(202)["run_id"], other.ok(202)["run_id"], bare.ok(202)["run_id"]})
    assert 3 == len(post.sent)
    ops.ask("POST", "/v1/jobs/prune_history/run", Idempotency_Key="k1").problem(422, "IDEMPOTENCY_MISMATCH")


@pytest.mark.parametrize(
    "name", ["settle_claims", "SWEEP_GATES", "sweep_gates%20", "%7F", "%F0%9F%8E%9F", "x" * 5_000, "..", "%27%3B--"]
)
def test_what_is_no_job_cannot_be_run(shop: Shop, ops: Caller, post: PostBox, name: str) -> None:
    """And nothing is noted."""
    reply = ops.ask("POST", f"/v1/jobs/{name}/run")

    reply.problem(404, "JOB_NOT_FOUND")
    assert ([], 0) == (post.sent, rows_by_table(shop.services)["job_extra_run"])


@pytest.mark.parametrize("scope", ["storefront", "orders", "admin"])
def test_jobs_are_for_operators(shop: Shop, post: PostBox, scope: str) -> None:
    """No other scope opens them, and no key none."""
    for method, path in (("GET", "/v1/jobs"), ("POST", "/v1/jobs/sweep_gates/run")):
        shop.caller(scope).ask(method, path).problem(403, "FORBIDDEN")
        shop.caller().ask(method, path).problem(401, "UNAUTHENTICATED")

    assert [] == post.sent


def test_metrics_tell_the_age_of_each_job(shop: Shop, ops: Caller, post: PostBox) -> None:
    """Of those that have run; the period says what is old."""
    before = ops.ask("GET", "/metrics").body.decode()
    Scheduler(TABLE, shop.services.engine, post).tick()

    after = ops.ask("GET", "/metrics").body.decode()

    assert 'coupon_job_age_seconds{job="sweep_gates"}' not in before
    assert 'coupon_job_age_seconds{job="sweep_gates"}' in after
    assert 'coupon_job_period_seconds{job="prune_history"} 3600.0' in before
