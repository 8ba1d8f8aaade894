"""Signed requests, for keys that demand them: a stolen key or a copied request is worth nothing."""

from __future__ import annotations

import time
from hashlib import sha256

import pytest
from flask.testing import FlaskClient

from coupon_workers.access.api_key import create_key
from coupon_workers.access.signature import sign
from coupon_workers.runtime.services import Services
from tests.support.flask_caller import Headers, refusal_of


class Signer:
    """Signs requests with a key that demands it."""

    def __init__(self, services: Services) -> None:
        self.services = services
        made = create_key(services.engine, name="signed", scopes=["admin"], signed=True)
        self.key = made.key
        self.key_hash = sha256(made.key.encode()).hexdigest()
        self._nonce = 0

    def headers(self, method: str, target: str, body: bytes = b"", *, age_s: int = 0, nonce: str = "") -> Headers:
        """The headers of a request signed ``age_s`` seconds ago."""
        self._nonce += 1
        nonce = nonce or f"nonce-{self._nonce:016d}"
        signed_at = str(int(time.time()) - age_s)
        signature = sign(self.key_hash, method=method, target=target, time=signed_at, nonce=nonce, body=body)
        return {
            "Authorization": f"Bearer {self.key}",
            "X-Signature-Time": signed_at,
            "X-Signature-Nonce": nonce,
            "X-Signature": signature,
        }


@pytest.fixture
def signer(services: Services) -> Signer:
    """A signer for the run's database."""
    return Signer(services)


def test_a_signed_request_is_accepted(client: FlaskClient, signer: Signer) -> None:
    """With a query, with a body, with neither; up to five minutes old or early."""
    body = b'{"name": "n", "scopes": ["ops"]}'

    made = client.post(
        "/v1/api-keys", data=body, content_type="application/json", headers=signer.headers("POST", "/v1/api-keys", body)
    )
    listed = client.get("/v1/api-keys?limit=1", headers=signer.headers("GET", "/v1/api-keys?limit=1", age_s=290))
    early = client.get("/v1/api-keys", headers=signer.headers("GET", "/v1/api-keys", age_s=-290))

    assert [201, 200, 200] == [made.status_code, listed.status_code, early.status_code]


@pytest.mark.parametrize("missing", ["X-Signature-Time", "X-Signature-Nonce", "X-Signature"])
def test_a_key_that_demands_signatures_opens_nothing_without(client: FlaskClient, signer: Signer, missing: str) -> None:
    """The key alone, stolen, is worth nothing."""
    headers = signer.headers("GET", "/v1/api-keys")
    del headers[missing]

    assert (401, "INVALID_SIGNATURE") == refusal_of(client.get("/v1/api-keys", headers=headers))


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-Signature", "0" * 64),
        ("X-Signature", "é"),
        ("X-Signature-Time", "now"),
        ("X-Signature-Time", "9" * 400),
        ("X-Signature-Nonce", "short"),
        ("X-Signature-Nonce", "x" * 65),
    ],
)
def test_a_wrong_signature_opens_nothing(client: FlaskClient, signer: Signer, header: str, value: str) -> None:
    """Whatever part of it is wrong: 401, never 500."""
    headers = signer.headers("GET", "/v1/api-keys") | {header: value}

    assert (401, "INVALID_SIGNATURE") == refusal_of(client.get("/v1/api-keys", headers=headers))


def test_a_signature_is_for_its_request_only(client: FlaskClient, signer: Signer) -> None:
    """Another body, another query, another method: another signature."""
    body, json_type = b'{"name": "n", "scopes": ["ops"]}', "application/json"
    headers = signer.headers("POST", "/v1/api-keys", body)

    changed = client.post("/v1/api-keys", data=body.replace(b"ops", b"admin"), content_type=json_type, headers=headers)
    query = client.post("/v1/api-keys?x=1", data=body, content_type=json_type, headers=headers)
    method = client.get("/v1/api-keys", headers=signer.headers("POST", "/v1/api-keys"))

    for response in (changed, query, method):
        assert (401, "INVALID_SIGNATURE") == refusal_of(response)


@pytest.mark.parametrize("age_s", [310, -310])
def test_an_old_or_early_signature_opens_nothing(client: FlaskClient, signer: Signer, age_s: int) -> None:
    """Five minutes, either way."""
    headers = signer.headers("GET", "/v1/api-keys", age_s=age_s)

    assert (401, "INVALID_SIGNATURE") == refusal_of(client.get("/v1/api-keys", headers=headers))


def test_a_copied_request_is_refused(client: FlaskClient, signer: Signer) -> None:
    """The nonce was seen; another caller's equal nonce is his own."""
    headers = signer.headers("GET", "/v1/api-keys", nonce="0123456789abcdef")
    assert 200 == client.get("/v1/api-keys", headers=headers).status_code

    assert (401, "INVALID_SIGNATURE") == refusal_of(client.get("/v1/api-keys", headers=headers))
    another = Signer(signer.services).headers("GET", "/v1/api-keys", nonce="0123456789abcdef")
    assert 200 == client.get("/v1/api-keys", headers=another).status_code


def test_a_nonce_outlives_its_window(client: FlaskClient, signer: Signer) -> None:
    """As long as its time could be accepted, from either end of the window."""
    client.get("/v1/api-keys", headers=signer.headers("GET", "/v1/api-keys", nonce="0123456789abcdef"))

    ttls = [signer.services.redis.pttl(key) for key in signer.services.redis.keys("cw:nonce:*")]

    assert 1 == len(ttls)
    assert 600_000 < int(str(ttls[0])) <= 660_000
