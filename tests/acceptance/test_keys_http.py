"""API keys over HTTP, signed requests, and Idempotency-Key on every write."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from flask.testing import FlaskClient
from flask_openapi3 import OpenAPI
from sqlalchemy import text
from werkzeug.test import TestResponse

from coupon_workers.access.api_key import create_key, revoke_key
from coupon_workers.access.signature import sign
from coupon_workers.errors import Conflict, StoreUnavailable
from coupon_workers.runtime.services import Services
from web.app import create_app
from web.auth import guard_views, require
from web.idempotent import idempotent

Headers = dict[str, str]


@pytest.fixture
def app(services: Services) -> OpenAPI:
    """The application on the run's servers."""
    return create_app(services)


@pytest.fixture
def client(app: OpenAPI) -> FlaskClient:
    """A client of it."""
    return app.test_client()


def _key(services: Services, *scopes: str) -> Headers:
    return {"Authorization": f"Bearer {create_key(services.engine, name='test', scopes=scopes).key}"}


@pytest.fixture
def admin(services: Services) -> Headers:
    """The header of an administrator's key."""
    return _key(services, "admin")


def _code(response: TestResponse) -> tuple[int, str]:
    return response.status_code, json.loads(response.data)["code"]


def test_a_new_key_is_shown_once_and_opens(client: FlaskClient, admin: Headers) -> None:
    """The list tells of it, without it."""
    made = client.post("/v1/api-keys", json={"name": "n", "scopes": ["ops"]}, headers=admin)

    key = (made.json or {})["key"]
    assert 201 == made.status_code
    assert 200 == client.get("/v1/queues", headers={"Authorization": f"Bearer {key}"}).status_code
    listed = client.get("/v1/api-keys", headers=admin)
    assert key[20:] not in listed.get_data(as_text=True)
    newest = (listed.json or {})["items"][0]
    assert {**made.json, "key": None} == {**newest, "key": None}  # type: ignore[dict-item]
    assert newest["created_at"].endswith("Z")


def test_a_revoked_key_is_refused_at_once(client: FlaskClient, admin: Headers) -> None:
    """By the process that revoked it; revoking again changes nothing."""
    made = client.post("/v1/api-keys", json={"name": "n", "scopes": ["ops"]}, headers=admin).json or {}
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert 200 == client.get("/v1/queues", headers=headers).status_code

    first = client.delete(f"/v1/api-keys/{made['key_id']}", headers=admin)
    second = client.delete(f"/v1/api-keys/{made['key_id']}", headers=admin)

    assert (200, first.json) == (second.status_code, second.json)
    assert (first.json or {})["revoked_at"].endswith("Z")
    assert (401, "INVALID_KEY") == _code(client.get("/v1/queues", headers=headers))


def test_a_key_revoked_elsewhere_is_refused_within_seconds(
    client: FlaskClient, admin: Headers, services: Services
) -> None:
    """Another process has only the database in common with us."""
    made = create_key(services.engine, name="n", scopes=["ops"])
    headers = {"Authorization": f"Bearer {made.key}"}
    assert 200 == client.get("/v1/queues", headers=headers).status_code

    revoke_key(services.engine, made.record.key_id)
    deadline = time.monotonic() + 6
    while client.get("/v1/queues", headers=headers).status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)

    assert (401, "INVALID_KEY") == _code(client.get("/v1/queues", headers=headers))


def test_a_key_that_does_not_exist_cannot_be_revoked(client: FlaskClient, admin: Headers) -> None:
    """404, whatever text is given for its id."""
    for key_id in ("0123456789abcdef", "x", "%20", "a'b", "é"):
        assert (404, "API_KEY_NOT_FOUND") == _code(client.delete(f"/v1/api-keys/{key_id}", headers=admin))


def test_keys_are_listed_in_pages(client: FlaskClient, admin: Headers) -> None:
    """Each key once, newest first, and the last page has no successor."""
    for number in range(4):
        client.post("/v1/api-keys", json={"name": f"n{number}", "scopes": ["ops"]}, headers=admin)

    names, cursor = [], ""
    while cursor is not None:
        page: Any = client.get(f"/v1/api-keys?limit=2{cursor}", headers=admin).json
        names += [key["name"] for key in page["items"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"

    assert ["n3", "n2", "n1", "n0", "test"] == names


# --- signed requests


class Signer:
    """Signs requests with a key that demands it."""

    def __init__(self, services: Services) -> None:
        self.services = services
        made = create_key(services.engine, name="signed", scopes=["admin"], signed=True)
        self.key = made.key
        from hashlib import sha256

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

    assert (401, "INVALID_SIGNATURE") == _code(client.get("/v1/api-keys", headers=headers))


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

    assert (401, "INVALID_SIGNATURE") == _code(client.get("/v1/api-keys", headers=headers))


def test_a_signature_is_for_its_request_only(client: FlaskClient, signer: Signer) -> None:
    """Another body, another query, another method: another signature."""
    body, json_type = b'{"name": "n", "scopes": ["ops"]}', "application/json"
    headers = signer.headers("POST", "/v1/api-keys", body)

    changed = client.post("/v1/api-keys", data=body.replace(b"ops", b"admin"), content_type=json_type, headers=headers)
    query = client.post("/v1/api-keys?x=1", data=body, content_type=json_type, headers=headers)
    method = client.get("/v1/api-keys", headers=signer.headers("POST", "/v1/api-keys"))

    for response in (changed, query, method):
        assert (401, "INVALID_SIGNATURE") == _code(response)


@pytest.mark.parametrize("age_s", [310, -310])
def test_an_old_or_early_signature_opens_nothing(client: FlaskClient, signer: Signer, age_s: int) -> None:
    """Five minutes, either way."""
    headers = signer.headers("GET", "/v1/api-keys", age_s=age_s)

    assert (401, "INVALID_SIGNATURE") == _code(client.get("/v1/api-keys", headers=headers))


def test_a_copied_request_is_refused(client: FlaskClient, signer: Signer) -> None:
    """The nonce was seen; another caller's equal nonce is his own."""
    headers = signer.headers("GET", "/v1/api-keys", nonce="0123456789abcdef")
    assert 200 == client.get("/v1/api-keys", headers=headers).status_code

    assert (401, "INVALID_SIGNATURE") == _code(client.get("/v1/api-keys", headers=headers))
    another = Signer(signer.services).headers("GET", "/v1/api-keys", nonce="0123456789abcdef")
    assert 200 == client.get("/v1/api-keys", headers=another).status_code


def test_a_nonce_outlives_its_window(client: FlaskClient, signer: Signer) -> None:
    """As long as its time could be accepted, from either end of the window."""
    client.get("/v1/api-keys", headers=signer.headers("GET", "/v1/api-keys", nonce="0123456789abcdef"))

    ttls = [signer.services.redis.pttl(key) for key in signer.services.redis.keys("cw:nonce:*")]

    assert 1 == len(ttls)
    assert 600_000 < int(str(ttls[0])) <= 660_000


# --- Idempotency-Key


def _post(client: FlaskClient, headers: Headers, key: str, body: dict[str, Any] | bytes | None = None) -> TestResponse:
    made = body if body is not None else {"name": "n", "scopes": ["ops"]}
    data = made if isinstance(made, bytes) else json.dumps(made).encode()
    return client.post(
        "/v1/api-keys", data=data, content_type="application/json", headers={**headers, "Idempotency-Key": key}
    )


def _count_keys(services: Services) -> int:
    with services.engine.connect() as connection:
        return int(connection.scalar(text("SELECT count(*) FROM api_key WHERE name = 'n'")) or 0)


def test_a_request_sent_again_is_answered_again_and_done_once(
    client: FlaskClient, admin: Headers, services: Services
) -> None:
    """The secret is not part of the stored answer; everything else is."""
    first = _post(client, admin, "k")
    second = _post(client, admin, "k")

    assert (201, None) == (first.status_code, first.headers.get("Idempotency-Replayed"))
    assert (201, "true") == (second.status_code, second.headers["Idempotency-Replayed"])
    assert {**(first.json or {}), "key": None} == second.json
    assert first.content_type == second.content_type
    assert 1 == _count_keys(services)
    with services.engine.connect() as connection:
        stored = connection.scalar(text("SELECT response_body FROM idempotency")) or ""
    assert (first.json or {})["key"][20:] not in stored


def test_the_same_body_spelt_otherwise_is_the_same_request(client: FlaskClient, admin: Headers) -> None:
    """White space and the order of members mean nothing in JSON."""
    _post(client, admin, "k", b'{"name": "n", "scopes": ["ops"]}')

    again = _post(client, admin, "k", b'{"scopes":["ops"],\n"name":"\\u006e"}')

    assert (201, "true") == (again.status_code, again.headers["Idempotency-Replayed"])


def test_another_request_under_the_same_key_is_refused(client: FlaskClient, admin: Headers, services: Services) -> None:
    """Another body, another address, another method."""
    made = _post(client, admin, "k").json or {}
    key = {**admin, "Idempotency-Key": "k"}

    body = _post(client, admin, "k", {"name": "n", "scopes": ["admin"]})
    query = client.post("/v1/api-keys?x=1", json={"name": "n", "scopes": ["ops"]}, headers=key)
    delete = client.delete(f"/v1/api-keys/{made['key_id']}", headers=key)

    for response in (body, query, delete):
        assert (422, "IDEMPOTENCY_MISMATCH") == _code(response)
    assert 1 == _count_keys(services)


def test_the_answer_of_another_caller_is_never_shown(client: FlaskClient, admin: Headers, services: Services) -> None:
    """A key of a request belongs to the API key it was sent with."""
    first = _post(client, admin, "k")

    other = _post(client, _key(services, "admin"), "k")

    assert (first.json or {})["key_id"] != (other.json or {})["key_id"]
    assert "Idempotency-Replayed" not in other.headers


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é", "a\tb"])
def test_a_key_must_be_visible_ascii(client: FlaskClient, admin: Headers, services: Services, key: str) -> None:
    """1 to 255 characters; otherwise nothing is done."""
    assert (422, "VALIDATION_FAILED") == _code(_post(client, admin, key))
    assert 0 == _count_keys(services)


def test_a_body_that_breaks_a_rule_uses_up_no_key(client: FlaskClient, admin: Headers) -> None:
    """The corrected request runs under the same key."""
    assert (422, "VALIDATION_FAILED") == _code(_post(client, admin, "k", {"name": "n", "scopes": ["sesame"]}))

    assert 201 == _post(client, admin, "k").status_code


class Counter:
    """A view of the test's own, guarded and idempotent like any other."""

    def __init__(self, app: OpenAPI) -> None:
        self.calls = 0
        self.outcome: Exception | None = None
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

        @require("admin")
        @idempotent
        def view() -> Any:
            self.calls += 1
            self.begun.set()
            self.go_on.wait(10)
            if self.outcome is not None:
                raise self.outcome
            return {"calls": self.calls}, 201

        app.add_url_rule("/test", endpoint="counter", view_func=view, methods=["POST"])
        # The other views are guarded already; only this one is left to guard.
        others, app.view_functions = app.view_functions, {"counter": view}
        guard_views(app)
        app.view_functions = {**others, **app.view_functions}

    def post(self, client: FlaskClient, headers: Headers) -> TestResponse:
        """Call it under one key."""
        return client.post("/test", headers={**headers, "Idempotency-Key": "k"})


@pytest.fixture
def counter(app: OpenAPI) -> Counter:
    """The view, in the application."""
    return Counter(app)


@pytest.mark.parametrize("outcome", [StoreUnavailable("PostgreSQL"), RuntimeError("bug")])
def test_a_failure_of_ours_is_not_kept(
    client: FlaskClient, admin: Headers, counter: Counter, outcome: Exception
) -> None:
    """The next request like it runs."""
    counter.outcome = outcome
    failed = counter.post(client, admin)
    counter.outcome = None

    again = counter.post(client, admin)

    assert 500 <= failed.status_code <= 503
    assert (201, {"calls": 2}) == (again.status_code, again.json)


def test_a_refusal_is_kept(client: FlaskClient, admin: Headers, counter: Counter) -> None:
    """A conflict that was answered stays answered, evidence and form included."""
    counter.outcome = Conflict("BUSY", "it is busy", by="another")
    first = counter.post(client, admin)
    counter.outcome = None

    second = counter.post(client, admin)

    assert (409, "BUSY") == _code(first)
    assert (first.data, first.content_type) == (second.data, second.content_type)
    assert ("true", 1) == (second.headers["Idempotency-Replayed"], counter.calls)


def test_while_the_first_runs_the_others_are_told_to_wait(
    app: OpenAPI, client: FlaskClient, admin: Headers, counter: Counter
) -> None:
    """409 with Retry-After; afterwards they get its answer."""
    counter.go_on.clear()
    answers: list[TestResponse] = []
    first = threading.Thread(target=lambda: answers.append(counter.post(app.test_client(), admin)))
    first.start()
    assert counter.begun.wait(5)

    waiting = counter.post(client, admin)
    counter.go_on.set()
    first.join(10)

    assert (409, "IN_PROGRESS") == _code(waiting)
    assert 1 <= int(waiting.headers["Retry-After"]) <= 60
    assert 201 == answers[0].status_code
    assert ({"calls": 1}, "true") == (
        (replayed := counter.post(client, admin)).json,
        replayed.headers["Idempotency-Replayed"],
    )


def test_without_the_header_every_request_runs(client: FlaskClient, admin: Headers, counter: Counter) -> None:
    """Idempotency is offered, not forced."""
    for _ in range(2):
        client.post("/test", headers=admin)

    assert 2 == counter.calls
