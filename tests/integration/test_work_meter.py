"""What workers count, and what a front tells of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import dramatiq
import pytest
import redis
from dramatiq.brokers.stub import StubBroker
from prometheus_client.metrics_core import Metric

from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.claiming.stock_gauge import MOST_TOLD, read_sale_stock
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.message_meter import MessageMeter
from coupon_workers.runtime.metrics import exposition
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.work_meter import (
    COUNTS,
    DRAIN_SIZE,
    HISTOGRAMS,
    TASK_TIME,
    TASKS_FAILED,
    WORK_KEY,
    count,
    flush,
    observe,
)
from coupon_workers.runtime.work_reading import read_work
from tests.support.sale import open_sale

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def meter(redis_client: redis.Redis) -> Iterator[redis.Redis]:
    """A meter at zero, and the Redis it tells."""
    flush(redis_client)
    redis_client.delete(WORK_KEY)
    yield redis_client
    flush(redis_client)


def told(client: redis.Redis, *names: str) -> dict[str, float]:
    """Series → value as Prometheus reads them, of the metrics ``names``; buckets that hold nothing are left out."""
    lines = exposition(read_work(client)).decode().splitlines()
    series = (line.rsplit(" ", 1) for line in lines if line.startswith(names))
    return {name: float(value) for name, value in series if float(value)}


def test_values_are_counted_in_their_bucket_and_all_above(meter: redis.Redis) -> None:
    """A value on a bound belongs to it; one beyond all bounds is in the last bucket alone."""
    observe(DRAIN_SIZE, [0, 1, 1_000, 70_000])

    flush(meter)

    series = told(meter, "coupon_drain_claims")
    buckets = [series[f'coupon_drain_claims_bucket{{le="{le}"}}'] for le in ("0.0", "1.0", "500.0", "1000.0", "+Inf")]
    assert [1.0, 2.0, 2.0, 3.0, 4.0] == buckets
    assert (4.0, 71_001.0) == (series["coupon_drain_claims_count"], series["coupon_drain_claims_sum"])


def test_the_counts_of_all_workers_are_added_up(meter: redis.Redis) -> None:
    """Each adds what it has; nothing is told twice."""
    for _ in range(2):  # two workers, or one a second later
        count(TASKS_FAILED, "close_day", 2)
        observe(TASK_TIME, [0.25], "close_day")
        flush(meter)
    flush(meter)

    series = told(meter, "coupon_tasks_failed", "coupon_task_seconds_count", "coupon_task_seconds_sum")

    assert {
        'coupon_tasks_failed_total{task="close_day"}': 4.0,
        'coupon_task_seconds_count{task="close_day"}': 2.0,
        'coupon_task_seconds_sum{task="close_day"}': 0.5,
    } == series


def test_counts_wait_for_a_redis_that_is_away(meter: redis.Redis) -> None:
    """They are told when it is back."""
    count(TASKS_FAILED, "close_day")
    away = client_without_retries(NOWHERE, 200)

    flush(away)
    count(TASKS_FAILED, "close_day")
    flush(meter)

    assert {'coupon_tasks_failed_total{task="close_day"}': 2.0} == told(meter, "coupon_tasks_failed")


def test_every_metric_is_there_before_the_first_worker_is(meter: redis.Redis) -> None:
    """With its type, so that a dashboard finds it."""
    kinds: list[Metric] = read_work(meter)

    assert [kind.name for kind in (*HISTOGRAMS, *COUNTS)] == [kind.name for kind in kinds]


def test_a_settled_claim_is_counted_by_its_end_and_its_wait(meter: redis.Redis, services: Services) -> None:
    """Issued, or rejected with its reason; from acceptance to commit."""
    sale = open_sale(services)
    sale.claim_each(["ann", "bob"])
    sale.drain()
    services.redis.flushall()
    sale.preheat()
    sale.services.redis.delete(sale.keys.requests, sale.keys.takers)
    sale.claim("ann")
    sale.drain()

    flush(meter)

    settled = told(meter, "coupon_claims_settled")
    assert 2.0 == settled['coupon_claims_settled_total{end="issued"}']
    assert 3.0 == sum(settled.values())
    series = told(meter, "coupon_claim_durable_seconds")
    assert 3.0 == series["coupon_claim_durable_seconds_count"]


class Shop:
    """A broker in memory with a task that works and one that breaks, measured."""

    def __init__(self, settings: Settings) -> None:
        self.broker = StubBroker(middleware=[MessageMeter(settings)])
        self.works = dramatiq.actor(lambda: None, actor_name="works", queue_name="care", broker=self.broker)
        self.breaks = dramatiq.actor(self._break, actor_name="breaks", queue_name="care", broker=self.broker)

    def _break(self) -> None:
        raise ValueError("broken")

    def work_off(self) -> None:
        """Start a worker, wait until nothing waits, stop it: it tells the rest as it ends."""
        worker = dramatiq.Worker(self.broker, worker_threads=1, worker_timeout=50)
        worker.start()
        self.broker.join("care", fail_fast=False)
        worker.stop()


def test_messages_are_measured_from_their_sending_to_their_end(meter: redis.Redis, settings: Settings) -> None:
    """How long they waited by queue, how long they took and whether they failed by task; none for a made-up task."""
    shop = Shop(settings)
    late_ms = int(time.time() * 1000) - 2_000
    message = shop.works.message()
    shop.broker.enqueue(message.copy(message_timestamp=late_ms))
    shop.breaks.send()
    shop.broker.enqueue(message.copy(actor_name="a made-up name"))  # whoever writes here makes no labels up

    shop.work_off()

    series = told(meter, "coupon_message_wait_seconds", "coupon_task_seconds_count", "coupon_tasks_failed_total")
    assert 2.0 == series['coupon_message_wait_seconds_count{queue="care"}']
    assert 1.0 == series['coupon_message_wait_seconds_bucket{le="1.0",queue="care"}']
    assert 1.0 == series['coupon_task_seconds_count{task="works"}']
    assert 1.0 == series['coupon_tasks_failed_total{task="breaks"}']
    assert not any("made-up" in name for name in series)


def test_stock_is_told_of_what_is_on_sale_alone(services: Services) -> None:
    """Not of what has not begun, is over, or is paused; what has nothing left is on sale all the same."""
    now = utc_now()
    hour = timedelta(hours=1)
    sale = open_sale(services, total_quantity=2)
    sold_out = open_sale(services, template_id=7_002, total_quantity=1)
    open_sale(services, template_id=7_003, claim_start=now + hour, claim_end=now + 2 * hour)
    open_sale(services, template_id=7_004, claim_start=now - 2 * hour, claim_end=now - hour)
    open_sale(services, template_id=7_005, status="paused")
    sale.claim("ann")
    sold_out.claim("ann")

    stock = read_sale_stock(services.redis)

    assert (2, 1) == (stock.on_sale, stock.sold_out)
    assert {sale.template_id: 1, sold_out.template_id: 0} == stock.left


def test_a_gate_that_was_emptied_has_no_stock_to_tell(services: Services) -> None:
    """An absent number is no zero: nobody is to read it as sold out."""
    sale = open_sale(services)
    services.redis.delete(sale.keys.generation)

    stock = read_sale_stock(services.redis)

    assert (0, 0, {}) == (stock.on_sale, stock.sold_out, stock.left)


def test_of_many_sales_those_that_opened_last_have_a_number(services: Services) -> None:
    """Each is a series that Prometheus keeps; all are counted."""
    sale = open_sale(services)
    pipeline = services.redis.pipeline(transaction=False)
    for number in range(1, MOST_TOLD + 11):
        keys = BucketKeys(number)
        pipeline.hset(keys.meta, mapping={"status": "open", "start_ms": number, "end_ms": 4_000_000_000_000})
        pipeline.set(keys.stock, 5)
        pipeline.set(keys.generation, "1")
        pipeline.sadd(WARM_TEMPLATES, f"{number}.0")
    pipeline.execute()

    stock = read_sale_stock(services.redis)

    assert (MOST_TOLD + 11, 0, MOST_TOLD) == (stock.on_sale, stock.sold_out, len(stock.left))
    assert sale.template_id in stock.left
    assert not {*range(1, 12)} & stock.left.keys()
