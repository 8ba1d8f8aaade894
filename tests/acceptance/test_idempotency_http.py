"""``Idempotency-Key`` over HTTP: what is sent again is answered again, and done once."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from flask.testing import FlaskClient
from flask_openapi3 import OpenAPI
from sqlalchemy import text
from werkzeug.test import TestResponse

from coupon_workers.errors import Busy, Conflict, InvalidInput, StoreUnavailable, TooManyTries
from coupon_workers.runtime.services import Services
from tests.support.flask_caller import Headers, key_header, refusal_of
from web.auth import guard_views, require
from web.idempotent import idempotent


@pytest.fixture
def admin(services: Services) -> Headers:
    """The header of an administrator's key."""
    return key_header(services, "admin")


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
        assert (422, "IDEMPOTENCY_MISMATCH") == refusal_of(response)
    assert 1 == _count_keys(services)


def test_the_answer_of_another_caller_is_never_shown(client: FlaskClient, admin: Headers, services: Services) -> None:
    """A key of a request belongs to the API key it was sent with."""
    first = _post(client, admin, "k")

    other = _post(client, key_header(services, "admin"), "k")

    assert (first.json or {})["key_id"] != (other.json or {})["key_id"]
    assert "Idempotency-Replayed" not in other.headers


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é", "a\tb"])
def test_a_key_must_be_visible_ascii(client: FlaskClient, admin: Headers, services: Services, key: str) -> None:
    """1 to 255 characters; otherwise nothing is done."""
    assert (422, "VALIDATION_FAILED") == refusal_of(_post(client, admin, key))
    assert 0 == _count_keys(services)


def test_a_body_that_breaks_a_rule_uses_up_no_key(client: FlaskClient, admin: Headers) -> None:
    """The corrected request runs under the same key."""
    assert (422, "VALIDATION_FAILED") == refusal_of(_post(client, admin, "k", {"name": "n", "scopes": ["sesame"]}))

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


@pytest.mark.parametrize(
    "outcome",
    [InvalidInput([("name", "must not be so")]), TooManyTries(1_000), Busy("BUSY", "others have it in hand")],
)
def test_what_was_not_done_and_may_be_later_is_not_kept(
    client: FlaskClient, admin: Headers, counter: Counter, outcome: Exception
) -> None:
    """A rule that the view found broken, too much at once, or others at work: the next request like it runs."""
    counter.outcome = outcome
    refused = counter.post(client, admin)
    counter.outcome = None

    again = counter.post(client, admin)

    assert refused.status_code in (422, 429, 409)
    assert (201, {"calls": 2}) == (again.status_code, again.json)


def test_a_refusal_is_kept(client: FlaskClient, admin: Headers, counter: Counter) -> None:
    """A conflict that was answered stays answered, evidence and form included."""
    counter.outcome = Conflict("TAKEN", "it is taken", by="another")
    first = counter.post(client, admin)
    counter.outcome = None

    second = counter.post(client, admin)

    assert (409, "TAKEN") == refusal_of(first)
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

    assert (409, "IN_PROGRESS") == refusal_of(waiting)
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


TEMPLATE = {
    "name": "n",
    "type": "cash",
    "currency": "CNY",
    "amount": 100,
    "total_quantity": 1,
    "claim_start": "2026-11-11T00:00:00Z",
    "claim_end": "2026-11-12T00:00:00Z",
    "validity": {"mode": "relative", "days": 7},
}


def _lose_the_answer(services: Services) -> None:
    """As if the process had died before it kept it, a while ago."""
    with services.engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE idempotency SET state = 'running', deadline = now() - interval '1 second',"
                " response_status = NULL, response_body = NULL, response_type = NULL"
            )
        )


def test_a_request_whose_process_died_after_its_effect_has_no_second_one(
    client: FlaskClient, admin: Headers, services: Services
) -> None:
    """The identity of what it makes was allotted before it ran: whoever takes over makes the same template."""
    headers = {**admin, "Idempotency-Key": "k"}
    first = client.post("/v1/templates", json=TEMPLATE, headers=headers)
    _lose_the_answer(services)

    again = client.post("/v1/templates", json=TEMPLATE, headers=headers)

    assert (201, 201) == (first.status_code, again.status_code)
    assert (first.json or {})["template_id"] == (again.json or {})["template_id"]
    with services.engine.connect() as connection:
        assert 1 == connection.scalar(text("SELECT count(*) FROM coupon_template"))


def test_a_key_whose_making_died_before_its_answer_is_made_once(
    client: FlaskClient, admin: Headers, services: Services
) -> None:
    """The repetition tells of the same key, without it: nobody knows whether it was shown. It is kept like that."""
    first = _post(client, admin, "k")
    _lose_the_answer(services)

    again, kept = _post(client, admin, "k"), _post(client, admin, "k")

    assert (201, 201, 201) == (first.status_code, again.status_code, kept.status_code)
    assert {**(first.json or {}), "key": None} == again.json == kept.json
    assert 1 == _count_keys(services)
