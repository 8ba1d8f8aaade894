"""Queues and dead letters over HTTP, against what Dramatiq's own broker writes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import dramatiq
import pytest
import redis
from dramatiq.message import Message
from flask.testing import FlaskClient

from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.runtime.broker import make_broker
from coupon_workers.runtime.clock import to_ms, utc_now
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import Queue
from tests.support.flask_caller import Headers, key_header, refusal_of
from web.app import create_app

BIG = 653247040368672768
"""An identity that no double holds: a replay must not change a digit of it."""


@pytest.fixture
def ops(services: Services) -> Headers:
    """The header of an operator's key."""
    return key_header(services, "ops")


@pytest.fixture
def broker(services: Services) -> Iterator[dramatiq.Broker]:
    """The workers' broker, on the run's server."""
    made = make_broker(services.settings, for_workers=True)
    for queue in Queue:
        made.declare_queue(queue.value)
    yield made
    made.close()


@pytest.fixture
def broker_redis(services: Services) -> Iterator[redis.Redis]:
    """A client of the broker's Redis."""
    assert services.settings.broker_url is not None
    client = client_without_retries(services.settings.broker_url.get_secret_value(), 2_000)
    yield client
    client.close()


def _send(broker: dramatiq.Broker, *args: int, queue: str = "settle") -> None:
    broker.enqueue(Message(queue_name=queue, actor_name="settle_claims", args=args, kwargs={}, options={}))


def _kill_all(broker: dramatiq.Broker, queue: str = "settle") -> None:
    """Give up every message of a queue, as a worker does that has tried it for the last time."""
    consumer = broker.consume(queue, prefetch=100, timeout=100)
    while (message := next(consumer)) is not None:
        message.options.update(retries=4, traceback="Traceback …\n  File x\npsycopg2.errors.Boom: user u-1001 exists\n")
        consumer.nack(message)
    consumer.close()


def _letters(client: FlaskClient, headers: Headers) -> list[dict[str, object]]:
    return list((client.get("/v1/dead-letters", headers=headers).json or {})["items"])


def test_the_depth_and_age_of_a_queue_are_told(client: FlaskClient, ops: Headers, broker: dramatiq.Broker) -> None:
    """Of the messages that wait; those at work are told apart."""
    for number in range(3):
        _send(broker, number)
    time.sleep(0.05)
    consumer = broker.consume("settle", prefetch=1, timeout=100)
    assert next(consumer) is not None

    settle, care, *_ = (client.get("/v1/queues", headers=ops).json or {})["queues"]

    assert ("settle", 2, 1, 0) == (settle["name"], settle["depth"], settle["in_work"], settle["dead_letters"])
    assert 50 <= settle["age_ms"] < 60_000
    assert ("care", 0, None) == (care["name"], care["depth"], care["age_ms"])


def test_claims_that_wait_are_told_by_template(client: FlaskClient, ops: Headers, redis_client: redis.Redis) -> None:
    """The longest waiting first; a template without any is left out."""
    redis_client.sadd(WARM_TEMPLATES, f"{BIG}.0", "7.1", "8.0")
    now_ms = to_ms(utc_now())
    redis_client.xadd(BucketKeys(BIG).pending, {"c": "1"}, id=f"{now_ms - 5_000}-0")
    redis_client.xadd(BucketKeys(7, 1).pending, {"c": "2"}, id=f"{now_ms - 9_000}-0")
    redis_client.xadd(BucketKeys(7, 1).pending, {"c": "3"})

    body = client.get("/v1/queues", headers=ops).json or {}

    shown = [(item["template_id"], item["bucket"], item["depth"]) for item in body["pending_claims"]]
    assert ([("7", 1, 2), (str(BIG), 0, 1)], 3) == (shown, body["pending_total"])
    assert body["pending_claims"][0]["oldest_age_ms"] >= 9_000


def test_a_dead_letter_tells_what_it_was_and_not_what_went_wrong_in_it(
    client: FlaskClient, ops: Headers, broker: dramatiq.Broker
) -> None:
    """Identities are text; of the trace only the class of the error is shown."""
    _send(broker, BIG, 0)
    _kill_all(broker)

    letters = _letters(client, ops)

    assert 1 == len(letters)
    assert ("settle", "settle_claims", [str(BIG), 0]) == (letters[0]["queue"], letters[0]["actor"], letters[0]["args"])
    assert str(letters[0]["died_at"]).endswith("Z")
    assert b"u-1001" not in client.get("/v1/dead-letters", headers=ops).data


def test_a_dead_letter_is_sent_again_once(client: FlaskClient, ops: Headers, broker: dramatiq.Broker) -> None:
    """With every digit of its arguments, and as new: a worker may try it as often as any."""
    _send(broker, BIG, 0)
    _kill_all(broker)
    message_id = _letters(client, ops)[0]["id"]

    first = client.post(f"/v1/dead-letters/{message_id}/replay", headers=ops)
    second = client.post(f"/v1/dead-letters/{message_id}/replay", headers=ops)

    assert (200, "replayed") == (first.status_code, (first.json or {})["status"])
    assert (404, "DEAD_LETTER_NOT_FOUND") == refusal_of(second)
    consumer = broker.consume("settle", prefetch=10, timeout=100)
    message = next(consumer)
    assert message is not None and next(consumer) is None
    assert (BIG, 0) == tuple(message.args)
    assert not {"retries", "traceback"} & set(message.options)
    consumer.ack(message)
    assert [] == _letters(client, ops)


def test_a_dead_letter_that_is_sent_again_is_dated_anew(
    client: FlaskClient, ops: Headers, broker_redis: redis.Redis
) -> None:
    """An old date would have a worker drop it for its age, and an alert count the days as waiting."""
    letter = {"actor_name": "sweep_gates", "queue_name": "care", "args": [], "kwargs": {}, "options": {}}
    content = json.dumps(letter | {"message_id": "m", "message_timestamp": 1_000})
    broker_redis.zadd("dramatiq:care.XQ", {"m1": 1_000})
    broker_redis.hset("dramatiq:care.XQ.msgs", "m1", content)
    before_ms = to_ms(utc_now())

    client.post("/v1/dead-letters/m1/replay", headers=ops)

    sent = json.loads(broker_redis.hget("dramatiq:care.msgs", "m1") or b"")  # type: ignore[arg-type]
    assert before_ms <= sent.pop("message_timestamp") <= to_ms(utc_now())
    assert letter | {"message_id": "m"} == sent


def test_of_many_who_replay_at_once_one_does(
    services: Services, ops: Headers, client: FlaskClient, broker: dramatiq.Broker, broker_redis: redis.Redis
) -> None:
    """The move is one step."""
    _send(broker, 1)
    _kill_all(broker)
    message_id = _letters(client, ops)[0]["id"]
    app = create_app(services)

    def end(verb: str) -> int:
        return app.test_client().post(f"/v1/dead-letters/{message_id}/{verb}", headers=ops).status_code

    with ThreadPoolExecutor(6) as threads:
        statuses = sorted(threads.map(end, ["replay"] * 6))

    assert [200, 404, 404, 404, 404, 404] == statuses
    assert 1 == broker_redis.llen("dramatiq:settle")


def test_a_discarded_dead_letter_is_gone(
    client: FlaskClient, ops: Headers, broker: dramatiq.Broker, broker_redis: redis.Redis
) -> None:
    """From the list, and from the server's memory."""
    _send(broker, 1)
    _kill_all(broker)
    message_id = _letters(client, ops)[0]["id"]

    first = client.post(f"/v1/dead-letters/{message_id}/discard", headers={**ops, "Idempotency-Key": "k"})
    replayed = client.post(f"/v1/dead-letters/{message_id}/discard", headers={**ops, "Idempotency-Key": "k"})
    second = client.post(f"/v1/dead-letters/{message_id}/discard", headers=ops)

    assert (200, "discarded") == (first.status_code, (first.json or {})["status"])
    assert (200, "true") == (replayed.status_code, replayed.headers["Idempotency-Replayed"])
    assert (404, "DEAD_LETTER_NOT_FOUND") == refusal_of(second)
    assert 0 == broker_redis.exists("dramatiq:settle.XQ", "dramatiq:settle.XQ.msgs", "dramatiq:settle.msgs")


@pytest.mark.parametrize(
    "content", [b"\xff\x00", b"{", b"[]", b"1", b'{"actor_name": 1}', b'{"args": {}}', b"[" * 9_999]
)
def test_a_message_nobody_can_read_can_only_be_discarded(
    client: FlaskClient, ops: Headers, broker_redis: redis.Redis, content: bytes
) -> None:
    """It is listed all the same."""
    broker_redis.zadd("dramatiq:care.XQ", {"m1": 1_000})
    broker_redis.hset("dramatiq:care.XQ.msgs", "m1", content)

    letters = _letters(client, ops)

    assert ("m1", "care", None, None) == tuple(letters[0][name] for name in ("id", "queue", "actor", "args"))
    assert (409, "UNREADABLE") == refusal_of(client.post("/v1/dead-letters/m1/replay", headers=ops))
    assert 200 == client.post("/v1/dead-letters/m1/discard", headers=ops).status_code


def test_dead_letters_are_listed_in_pages(client: FlaskClient, ops: Headers, broker_redis: redis.Redis) -> None:
    """Each once, queue by queue, the latest first, equal instants by id."""
    for queue in ("settle", "care"):
        for number in range(5):
            broker_redis.zadd(f"dramatiq:{queue}.XQ", {f"{queue}-{number}": 1_000 + number // 2})
            broker_redis.hset(f"dramatiq:{queue}.XQ.msgs", f"{queue}-{number}", b"?")

    ids, cursor = [], ""
    while cursor is not None:
        page = client.get(f"/v1/dead-letters?limit=3{cursor}", headers=ops).json or {}
        ids += [letter["id"] for letter in page["items"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"

    assert [f"{queue}-{number}" for queue in ("settle", "care") for number in (4, 3, 2, 1, 0)] == ids
