"""Signing a request: the text that is signed is fixed for good, because clients write it down too."""

from __future__ import annotations

from hashlib import sha256

import pytest

from coupon_workers.access.signature import sign

KEY_HASH = sha256(b"cw_0123456789abcdef_secret").hexdigest()


def test_a_signature_is_the_hmac_of_five_lines() -> None:
    """A client that follows the description makes the same signature."""
    import hmac

    body = b'{"a":1}'
    lines = ["POST", "/v1/claims?x=1", "1793700000", "5c1f0d4a9be24f10", sha256(body).hexdigest()]
    expected = hmac.new(KEY_HASH.encode(), "\n".join(lines).encode(), sha256).hexdigest()

    actual = sign(
        KEY_HASH, method="post", target="/v1/claims?x=1", time="1793700000", nonce="5c1f0d4a9be24f10", body=body
    )

    assert expected == actual


@pytest.mark.parametrize(
    "change",
    [
        {"method": "PUT"},
        {"target": "/v1/claims"},
        {"time": "1793700001"},
        {"nonce": "5c1f0d4a9be24f11"},
        {"body": b""},
    ],
)
def test_every_part_of_a_request_is_signed(change: dict[str, object]) -> None:
    """Nothing of a request can be changed under its signature."""
    parts = {
        "method": "POST",
        "target": "/v1/claims?x=1",
        "time": "1793700000",
        "nonce": "5c1f0d4a9be24f10",
        "body": b"{}",
    }

    assert sign(KEY_HASH, **parts) != sign(KEY_HASH, **(parts | change))  # type: ignore[arg-type]
