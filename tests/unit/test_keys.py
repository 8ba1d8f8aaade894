"""The Redis keys of claiming: their names are a promise to data that live longer than a process."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.claiming.gate_rules import GateRules
from coupon_workers.claiming.key import BucketKeys, bucket_of

NAMES = (
    "meta",
    "generation",
    "stock",
    "takers",
    "requests",
    "claims",
    "pending",
    "bell",
    "day_prefix",
    "rate_prefix",
    "pool",
)


def keys_of(keys: BucketKeys) -> list[str]:
    """Every key of a bucket."""
    return [*(getattr(keys, name) for name in NAMES), *(keys.shadow(name) for name in ("takers", "requests", "day:"))]


def test_the_keys_of_a_bucket_share_one_hash_tag() -> None:
    """A Redis Cluster puts them on one node, so that one script may touch them all."""
    tags = {tag for key in keys_of(BucketKeys(7001, 3)) for tag in re.findall(r"\{([^}]+)\}", key)}

    assert {"t7001.3"} == tags


def test_no_two_keys_are_the_same() -> None:
    """Nor is one the prefix with which another is made."""
    keys = keys_of(BucketKeys(7001)) + keys_of(BucketKeys(7001, 1)) + keys_of(BucketKeys(70010))
    prefixes = [key for key in keys if key.endswith(":")]

    assert len(keys) == len(set(keys))
    assert [] == [(key, prefix) for key in keys for prefix in prefixes if key != prefix and key.startswith(prefix)]


def test_names_are_as_they_were() -> None:
    """Renaming one would lose what is stored under it."""
    keys = BucketKeys(7001)

    assert "cw:{t7001.0}:stock" == keys.stock
    assert ["cw:{t7001.0}:day:", "cw:{t7001.0}:rate:"] == [keys.day_prefix, keys.rate_prefix]
    assert "cw:{t7001.0}:shadow:takers" == keys.shadow("takers")


def test_a_users_bucket_is_the_same_in_every_process_and_release() -> None:
    """Values taken down once."""
    assert [0, 0, 0] == [bucket_of(user, 1) for user in ("ann", "bob", "張偉")]
    assert [3, 0, 10] == [bucket_of(user, 16) for user in ("ann", "bob", "張偉")]


@given(st.text(), st.integers(1, 64))
def test_a_users_bucket_is_one_of_them(user: str, count: int) -> None:
    """Whatever the user is called."""
    assert 0 <= bucket_of(user, count) < count


@given(st.integers(0, 10**9), st.integers(1, 64))
def test_the_shares_of_the_buckets_sum_to_the_total(total: int, count: int) -> None:
    """And differ by one at most."""
    now = datetime(2026, 11, 11, tzinfo=UTC)
    rules = GateRules(7001, 1, total, 0, "active", now, now, None, None, "UTC", (), 0, count)

    shares = [rules.share_of(bucket) for bucket in range(count)]

    assert total == sum(shares)
    assert max(shares) - min(shares) <= 1
