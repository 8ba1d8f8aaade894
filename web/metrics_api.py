"""``GET /metrics``: Prometheus reads it (API.md, Operations)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from coupon_workers.claiming.stock_gauge import SaleStock, read_sale_stock
from coupon_workers.errors import StoreUnavailable
from coupon_workers.notify.gauge import Lag, read_lag
from coupon_workers.reconciliation.gauge import read_open_findings
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.risk.gauge import read_risk
from coupon_workers.runtime.metrics import CONTENT_TYPE, exposition
from coupon_workers.runtime.queue_depth import PendingDepth, pending_depths
from coupon_workers.runtime.work_reading import read_work
from coupon_workers.scheduling.job_reading import JobAge, read_job_ages
from web.auth import require
from web.context import services, web_of_app

api = APIBlueprint("metrics", __name__, abp_tags=[Tag(name="Operations")])

_TEXT = {"description": "Prometheus' text format", "content": {"text/plain": {"schema": {"type": "string"}}}}


@api.get("/metrics", summary="Metrics for Prometheus", responses={200: _TEXT})
@require("ops")
def get_metrics() -> Response:
    """Counts of all processes of this front and of all workers, at most a second old, and what waits at this moment."""
    return Response(exposition([*_message_gauges(), *_claim_gauges(), *_database_gauges()]), content_type=CONTENT_TYPE)


def _message_gauges() -> Iterator[Metric]:
    """A store that does not answer leaves its gauges out: an old or a made-up number would hide it."""
    depth = GaugeMetricFamily("coupon_queue_depth", "Messages that wait.", labels=["queue"])
    age = GaugeMetricFamily("coupon_queue_age_seconds", "Age of the oldest message that waits.", labels=["queue"])
    dead = GaugeMetricFamily("coupon_queue_dead_letters", "Messages that were given up.", labels=["queue"])
    try:
        for queue in web_of_app().queues.depths():
            depth.add_metric([queue.name], queue.depth)
            age.add_metric([queue.name], (queue.age_ms or 0) / 1000)
            dead.add_metric([queue.name], queue.dead_letters)
    except StoreUnavailable:
        yield _up("broker", False)
        return
    yield from (_up("broker", True), depth, age, dead)


def _claim_gauges() -> Iterator[Metric]:
    client = services().redis
    try:
        pending, stock, work = pending_depths(client), read_sale_stock(client), read_work(client)
    except StoreUnavailable:
        yield _up("redis", False)
        return
    yield _up("redis", True)
    yield from _pending_gauges(pending)
    yield from _stock_gauges(stock)
    yield from work


def _pending_gauges(pending: Sequence[PendingDepth]) -> Iterator[Metric]:
    depths = [bucket.depth for bucket in pending]
    oldest_ms = pending[0].oldest_age_ms if pending else 0
    yield GaugeMetricFamily("coupon_pending_claims", "Accepted claims that are not settled.", value=sum(depths))
    yield GaugeMetricFamily(
        "coupon_pending_claims_age_seconds", "Age of the oldest claim that is not settled.", value=oldest_ms / 1000
    )
    yield GaugeMetricFamily(
        "coupon_backlog_claims", "Claims that are not settled, of the template with most.", value=max(depths, default=0)
    )
    yield GaugeMetricFamily(
        "coupon_backlog_limit", "Claims of a template that may wait.", value=services().settings.backlog_limit
    )


def _stock_gauges(stock: SaleStock) -> Iterator[Metric]:
    yield GaugeMetricFamily("coupon_templates_on_sale", "Templates that may be claimed.", value=stock.on_sale)
    yield GaugeMetricFamily("coupon_templates_sold_out", "Those that have no unit left.", value=stock.sold_out)
    left = GaugeMetricFamily("coupon_stock", "Units that may still be claimed.", labels=["template_id"])
    for template_id, units in stock.left.items():
        left.add_metric([str(template_id)], units)
    yield left


def _database_gauges() -> Iterator[Metric]:
    try:
        lag, jobs, findings = read_lag(services()), read_job_ages(services()), read_open_findings(services())
        risk = read_risk(services())
    except StoreUnavailable:
        yield _up("postgresql", False)
        return
    yield _up("postgresql", True)
    yield from _notice_gauges(lag)
    yield from _job_gauges(jobs)
    yield _finding_gauge(findings)
    yield GaugeMetricFamily("coupon_risk_reviews_held", "Claims that wait for review.", value=risk.held)
    yield GaugeMetricFamily("coupon_risk_log_dropped", "Refusals that were not noted.", value=risk.dropped)


def _notice_gauges(lag: Lag) -> Iterator[Metric]:
    yield GaugeMetricFamily("coupon_outbox_events", "Events that were not passed on.", value=lag.events)
    yield GaugeMetricFamily("coupon_outbox_age_seconds", "Age of the oldest such event.", value=lag.age_s)
    deliveries = GaugeMetricFamily("coupon_deliveries", "Messages on their way, or given up.", labels=["state"])
    deliveries.add_metric(["pending"], lag.pending)
    deliveries.add_metric(["dead"], lag.dead)
    yield deliveries
    yield GaugeMetricFamily("coupon_delivery_targets_paused", "Targets that cannot be reached.", value=lag.paused)


def _job_gauges(jobs: Iterable[JobAge]) -> Iterator[Metric]:
    """A job that never ran has no age: it waits for its first scheduler."""
    age = GaugeMetricFamily("coupon_job_age_seconds", "Time since a job's task was last sent.", labels=["job"])
    period = GaugeMetricFamily("coupon_job_period_seconds", "Time between two runs of a job.", labels=["job"])
    for job in jobs:
        period.add_metric([job.name], job.period_s)
        if job.age_s is not None:
            age.add_metric([job.name], job.age_s)
    yield from (age, period)


def _finding_gauge(findings: dict[ReconKind, int]) -> Metric:
    waiting = GaugeMetricFamily("coupon_findings_open", "Differences that wait for a person.", labels=["kind"])
    for kind, count in findings.items():
        waiting.add_metric([kind.value], count)
    return waiting


def _up(store: str, answers: bool) -> Metric:
    return GaugeMetricFamily(f"coupon_{store}_up", f"Whether the {store} answers.", value=float(answers))
