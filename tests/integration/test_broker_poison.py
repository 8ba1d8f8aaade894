"""Bytes in a queue that are no message of ours: set aside, while the others are worked on (FAULTS 13)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from coupon_workers.runtime.settings import Settings
from tests.support.workshop import SETTLE, Workshop, eventually

FIVE_MEGABYTES = 5 * 1024 * 1024


def message(redis_id: str, **changed: Any) -> dict[str, Any]:
    """A message as a front sends it, with ``changed`` fields."""
    fields: dict[str, Any] = {
        "queue_name": SETTLE,
        "actor_name": "settle_claims",
        "args": [1, 0],
        "kwargs": {},
        "options": {"redis_message_id": redis_id},
        "message_id": f"m-{redis_id}",
        "message_timestamp": 1_800_000_000_000,
    }
    return fields | changed


def options(redis_id: str, **more: Any) -> dict[str, Any]:
    """The options of a message with ``more`` in them."""
    return {"options": {"redis_message_id": redis_id} | more}


UNREADABLE: dict[str, bytes] = {
    "nothing": b"",
    "no-text": b"\xff\xfe\x00",
    "half": b'{"queue_name": "settle"',
    "a-number": b"42",
    "null": b"null",
    "a-list": b"[]",
    "an-object": b"{}",
    "nested": b"[" * 200_000,
    "digits": b'{"a": ' + b"9" * 10_000 + b"}",
    "five-megabytes": b"x" * FIVE_MEGABYTES,
}

DEFORMED: dict[str, dict[str, Any]] = {
    "no-options": {"options": None},
    "options-list": {"options": []},
    "no-redis-id": {"options": {}},
    "redis-id-number": {"options": {"redis_message_id": 7}},
    "kwargs-list": {"kwargs": [1]},
    "actor-number": {"actor_name": 7},
    "id-null": {"message_id": None},
    "other-queue": {"queue_name": "elsewhere"},
    "queue-number": {"queue_name": 7},
    "dated-text": {"message_timestamp": "soon"},
    "dated-before-time": {"message_timestamp": -(10**30)},
    "dated-after-time": {"message_timestamp": 10**30},
    "sent-again-before-time": options("sent-again-before-time", requeue_timestamp=-(10**30)),
    "throws-text": {**options("throws-text", throws="abc"), "args": []},
}

FAILING: dict[str, dict[str, Any]] = {
    "unknown-actor": {"actor_name": "nobody"},
    "too-few": {"args": [1]},
    "too-many": {"args": [1, 2, 3]},
    "unknown-keyword": {"kwargs": {"bucket_no": 1}},
    "args-object": {"args": {"a": 1}},
    "large-argument": {"args": ["y" * FIVE_MEGABYTES]},
    "retries-text": {**options("retries-text", retries="many"), "args": [1]},
    "backoff-text": {**options("backoff-text", min_backoff="x", max_retries=5), "args": [1]},
}


@pytest.fixture
def workshop(settings: Settings, redis_client: redis.Redis) -> Workshop:
    """A worker's actor with two arguments."""
    made = Workshop(settings)
    made.actor("settle_claims", lambda template_id, bucket: None, max_retries=0)
    return made


def poison() -> dict[str, bytes]:
    """Every kind of it, by id."""
    deformed = {name: json.dumps(message(name, **changed)).encode() for name, changed in DEFORMED.items()}
    del_options = {key: value for key, value in message("without-options").items() if key != "options"}
    return UNREADABLE | deformed | {"without-options": json.dumps(del_options).encode()}


def test_poison_is_set_aside_and_every_other_message_is_done(workshop: Workshop) -> None:
    """However many of them there are, between good ones, on both threads; what they were can still be looked at."""
    expected = poison() | {name: json.dumps(message(name, **changed)).encode() for name, changed in FAILING.items()}
    for number, (name, content) in enumerate(expected.items()):
        workshop.push(name, content)
        workshop.push(f"good-{number}", json.dumps(message(f"good-{number}", args=[number, 0])).encode())

    with workshop.working():
        done = {workshop.next_done() for _ in expected}
        assert eventually(lambda: not workshop.left()), workshop.client.hkeys(f"dramatiq:{SETTLE}.msgs")

    dead = workshop.dead()
    assert {("settle_claims", number, 0) for number in range(len(expected))} == done
    assert expected.keys() == dead.keys()
    assert all(content == dead[name] for name, content in poison().items())


def test_poison_among_the_delayed_messages_goes_to_the_dead_letters_of_its_queue(workshop: Workshop) -> None:
    """Not to a place that nobody looks at."""
    workshop.push("delayed-poison", b"\xff", f"{SETTLE}.DQ")

    with workshop.working():
        assert eventually(lambda: workshop.dead() == {"delayed-poison": b"\xff"})

    assert 0 == workshop.left()


def test_a_delayed_message_comes_when_it_is_due(workshop: Workshop) -> None:
    """The check of what is readable knows it by its delay queue."""
    workshop.broker.actors["settle_claims"].send_with_options(args=(1, 0), delay=50)

    with workshop.working():
        assert ("settle_claims", 1, 0) == workshop.next_done()

    assert {} == workshop.dead()
