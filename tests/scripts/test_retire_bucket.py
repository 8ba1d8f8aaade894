"""``lua/retire_bucket.lua``: the keys of a bucket go, unless claims still wait in it."""

from __future__ import annotations

import pytest
import redis

from coupon_workers.runtime.lua_script import lua_script
from tests.support.claim_script import ClaimScript
from tests.support.redis_dump import dump


@pytest.fixture
def script(redis_client: redis.Redis) -> ClaimScript:
    """An open template with one claim pending."""
    made = ClaimScript(redis_client)
    made.warm()
    made.claim()
    return made


def retire(script: ClaimScript) -> bytes:
    """Ask once."""
    keys = script.keys
    names = [*script.all_keys()[:8], keys.pool, keys.risk_list, keys.risk_log]
    word: bytes = lua_script("retire_bucket")(script.client, names)
    return word


def test_a_bucket_with_a_claim_pending_is_kept(script: ClaimScript) -> None:
    """Whole, as it was."""
    before = dump(script.client)

    assert b"PENDING" == retire(script)
    assert before == dump(script.client)


def test_a_bucket_with_nothing_pending_is_forgotten(script: ClaimScript) -> None:
    """Its last key too; a claim is then refused as not warmed, and a second time finds nothing to do."""
    script.client.xtrim(script.keys.pending, maxlen=0, approximate=False)
    script.client.rpush(script.keys.pool, 700)

    assert (b"RETIRED", b"RETIRED") == (retire(script), retire(script))
    assert {} == dump(script.client)
    assert ["NOT_WARMED"] == script.claim()
