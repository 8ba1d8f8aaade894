"""The post and the broker: what a front sends is what an actor is given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
import redis
from pydantic import SecretStr

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime import task as tasks
from coupon_workers.runtime.broker import RABBIT_HEARTBEAT_S, QuorumBroker, make_broker
from coupon_workers.runtime.broker_guard import MAX_DELIVERIES
from coupon_workers.runtime.dramatiq_post import DramatiqPost
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.task import Queue
from tests.support.workshop import Workshop, eventually

BIG = 2**62 + 1
EVERY_TASK = [
    tasks.settle_claims(BIG, 0),
    tasks.preheat_template(BIG),
    tasks.sweep_gates(),
    tasks.prune_history(),
    tasks.relay_outbox(),
    tasks.deliver_messages("webhook:1"),
    tasks.expire_coupons(),
    tasks.warn_of_expiry(datetime(2026, 11, 11, tzinfo=UTC)),
    tasks.release_overdue_locks(),
    tasks.settle_order_events(),
    tasks.stage_batch(BIG),
    tasks.issue_shard(BIG, 1, 2),
    tasks.sweep_batches(),
    tasks.close_day(datetime(2026, 11, 11, tzinfo=UTC)),
    tasks.archive_coupons(),
    tasks.revoke_coupons(BIG),
    tasks.sweep_revocations(),
    tasks.reconcile("stock", datetime(2026, 11, 11, tzinfo=UTC)),
    tasks.run_reconciliation(BIG),
    tasks.sweep_reconciliations(),
    tasks.generate_codes(BIG),
    tasks.sweep_codes(),
    tasks.settle_draws(BIG),
    tasks.preheat_lottery(BIG),
    tasks.sweep_lotteries(),
    tasks.sweep_risk(),
    tasks.score_accounts(),
]


@pytest.fixture
def workshop(settings: Settings, redis_client: redis.Redis) -> Workshop:
    """Empty queues."""
    return Workshop(settings)


@pytest.fixture
def post(settings: Settings) -> DramatiqPost:
    """A front's post, over a broker of its own that knows no actor."""
    return DramatiqPost(make_broker(settings, for_workers=False))


def test_an_actor_is_given_what_was_sent(workshop: Workshop, post: DramatiqPost) -> None:
    """By name and over its queue; a number larger than a double holds stays exact."""
    for task in EVERY_TASK:
        workshop.actor(task.name, queue_name=task.queue.value)

    for task in EVERY_TASK:
        post.send(task)

    with workshop.working():
        given = {workshop.next_done() for _ in EVERY_TASK}
        assert {(task.name, *task.args) for task in EVERY_TASK} == given
        assert eventually(lambda: not any(workshop.left(queue.value) for queue in Queue))


def test_a_message_with_a_delay_comes_after_it(workshop: Workshop, post: DramatiqPost) -> None:
    """What was sent later without one is done before; and it holds no thread meanwhile."""
    workshop.actor("issue_shard", queue_name=Queue.CAMPAIGN.value)
    sent_s = time.monotonic()
    post.send(tasks.issue_shard(BIG, 1, 2, reserved_in_ms=500))

    with workshop.working(threads=1):
        post.send(tasks.issue_shard(BIG, 3, 4))

        assert [("issue_shard", BIG, 3, 4), ("issue_shard", BIG, 1, 2, tasks.RESERVED)] == [
            workshop.next_done(),
            workshop.next_done(),
        ]
    assert time.monotonic() - sent_s >= 0.5


def test_a_message_waits_for_a_worker(workshop: Workshop, post: DramatiqPost) -> None:
    """Sent while none runs."""
    post.send(tasks.settle_claims(1, 0))
    assert 1 == workshop.left()

    workshop.actor("settle_claims")
    with workshop.working():
        assert ("settle_claims", 1, 0) == workshop.next_done()


def test_a_broker_that_is_away_is_told_quickly(settings: Settings) -> None:
    """A front does not hold a customer's answer up for a bell."""
    away = settings.model_copy(update={"broker_url": SecretStr("unix:///nonexistent/valkey.sock")})
    post = DramatiqPost(make_broker(away, for_workers=False))
    started = time.monotonic()

    with pytest.raises(StoreUnavailable):
        post.send(tasks.settle_claims(1, 0))

    assert time.monotonic() - started < 3


def test_without_an_address_there_is_no_broker(settings: Settings) -> None:
    """Said at once, not at the first message."""
    with pytest.raises(StoreUnavailable, match="COUPON_BROKER_URL"):
        make_broker(settings.model_copy(update={"broker_url": None}), for_workers=True)


def test_rabbitmq_is_asked_to_confirm_and_to_replicate(settings: Settings) -> None:
    """As shipped, messages on their way are lost when it is killed; and its own cap ends a deadly message too."""
    rabbit = settings.model_copy(update={"broker_url": SecretStr("amqp://guest:guest@127.0.0.1:5672")})

    broker = make_broker(rabbit, for_workers=True)

    assert isinstance(broker, QuorumBroker)
    arguments = broker._build_queue_arguments("settle")
    assert (True, "quorum", MAX_DELIVERIES) == (
        broker.confirm_delivery,
        arguments["x-queue-type"],
        arguments["x-delivery-limit"],
    )


@pytest.mark.parametrize(("for_workers", "seconds"), [(False, 1.0), (True, 5.0)])
def test_rabbitmq_is_not_waited_for_long(settings: Settings, for_workers: bool, seconds: float) -> None:
    """Neither for a connection nor for one that it holds up; one that is silent is lost."""
    rabbit = settings.model_copy(update={"broker_url": SecretStr("amqp://guest:guest@127.0.0.1:5672/shop")})

    broker = make_broker(rabbit, for_workers=for_workers)

    assert isinstance(broker, QuorumBroker)
    assert not isinstance(broker.parameters, list)
    server = broker.parameters
    assert ("127.0.0.1", "shop") == (server.host, server.virtual_host)
    assert [seconds] * 3 == [server.socket_timeout, server.stack_timeout, server.blocked_connection_timeout]
    assert (1, RABBIT_HEARTBEAT_S) == (server.connection_attempts, server.heartbeat)


def test_every_task_names_an_actor_of_its_queue(settings: Settings, redis_client: redis.Redis) -> None:
    """A producer knows a name and a queue; the worker process must know both too."""
    assert settings.broker_url is not None
    show = "import actors, json; print(json.dumps({n: a.queue_name for n, a in actors.broker.actors.items()}))"
    environment = os.environ | {
        "COUPON_BROKER_URL": settings.broker_url.get_secret_value(),
        "COUPON_REDIS_URL": settings.redis_url.get_secret_value() if settings.redis_url else "",
    }

    shown = subprocess.run([sys.executable, "-c", show], env=environment, capture_output=True, check=True, text=True)

    declared = json.loads(shown.stdout.splitlines()[-1])
    assert {task.name: task.queue.value for task in EVERY_TASK} == declared
