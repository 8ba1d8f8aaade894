"""What the gate holds, as a checker reads it: buckets, marks that show whether anything moved, hashes in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import redis
from redis.exceptions import RedisError

from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.claiming.pending import PendingClaim, read_pending
from coupon_workers.errors import StoreUnavailable

CHUNK = 2_000
"""Fields of hashes that are read, and looked up in the database, at a time."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class GateMark:
    """A bucket at one moment. Two equal marks mean that no claim was accepted or settled between them:
    ``requests`` (fields of that hash) grows with every acceptance, and without one ``pending`` only falls.

    ``generation`` is None when the bucket is not warm.
    """

    generation: bytes | None
    stock: int
    pending: int
    requests: int


@contextmanager
def gate_errors() -> Iterator[None]:
    """Turn an absent server into ``StoreUnavailable``."""
    try:
        yield
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error


def known_buckets(client: redis.Redis) -> list[BucketKeys]:
    """Every bucket that was preheated and not retired, in order of template and bucket. Raises ``StoreUnavailable``."""
    with gate_errors():
        members: Any = client.smembers(WARM_TEMPLATES)
    parts = (member.decode().partition(".") for member in members)
    pairs = sorted((int(template_id), int(bucket)) for template_id, _, bucket in parts)
    return [BucketKeys(template_id, bucket) for template_id, bucket in pairs]


def gate_marks(client: redis.Redis, buckets: Sequence[BucketKeys]) -> list[GateMark]:
    """The mark of each bucket, in one round trip. Raises ``StoreUnavailable``."""
    pipeline = client.pipeline(transaction=False)
    for keys in buckets:
        pipeline.get(keys.generation)
        pipeline.get(keys.stock)
        pipeline.xlen(keys.pending)
        pipeline.hlen(keys.requests)
    with gate_errors():
        replies = pipeline.execute()
    quads = zip(replies[0::4], replies[1::4], replies[2::4], replies[3::4], strict=True)
    return [GateMark(generation, int(stock or 0), pending, requests) for generation, stock, pending, requests in quads]


def warm_buckets(client: redis.Redis) -> list[BucketKeys]:
    """The buckets whose keys are whole. Raises ``StoreUnavailable``."""
    return still_warm(client, known_buckets(client))


def still_warm(client: redis.Redis, buckets: Iterable[BucketKeys]) -> list[BucketKeys]:
    """Those of the buckets whose keys are whole, in their order. Raises ``StoreUnavailable``."""
    known = list(buckets)
    return [keys for keys, mark in zip(known, gate_marks(client, known), strict=True) if mark.generation is not None]


def queued_claims(client: redis.Redis, keys: BucketKeys) -> list[PendingClaim]:
    """Every readable claim of the pending stream; the backlog limit bounds them. Raises ``StoreUnavailable``."""
    with gate_errors():
        length = client.xlen(keys.pending)
    claims, _ = read_pending(client, keys, int(length) + CHUNK) if length else ([], [])
    return claims


def hash_fields(client: redis.Redis, keys: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Each (key, field, value) of hashes; a field may come twice. Raises ``StoreUnavailable``."""
    for key in keys:
        cursor = 0
        while True:
            with gate_errors():
                reply: Any = client.hscan(key, cursor, count=CHUNK)
            cursor, fields = reply
            for field, value in fields.items():
                yield key, field.decode(), value.decode()
            if cursor == 0:
                break


def chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    """The items, ``size`` at a time: many small hashes are looked up together, a large one part by part."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
