"""What holds for every address: problems, ids, limits, and nobody without a key."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from flask.testing import FlaskClient
from flask_openapi3 import OpenAPI

from coupon_workers.runtime.services import Services
from tests.support.flask_caller import Headers, key_header, refusal_of
from web.auth import guard_views, open_to_all, require

OPEN = {"/", "/livez", "/readyz", "/openapi.json", "/docs", "/docs/", "/docs/<path:file>"}


@pytest.fixture
def admin(services: Services) -> Headers:
    """The header of a key for everything."""
    return key_header(services, "admin", "ops", "storefront", "orders")


def test_nobody_gets_in_without_a_key(app: OpenAPI, client: FlaskClient) -> None:
    """Every address but health and the API's description asks for one, whatever the request looks like."""
    for rule in app.url_map.iter_rules():
        path = rule.rule.replace("<", "").replace(">", "")
        for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}:
            response = client.open(path, method=method, data=b"{", content_type="text/plain")
            if rule.rule in OPEN or rule.rule.startswith("/console"):  # people have sessions: test_console_login
                continue
            assert (401, "UNAUTHENTICATED") == refusal_of(response), rule
            assert response.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic dXNlcjpwYXNz",
        f"Bearer cw_0123456789abcdef_{'A' * 43}",
        f"Bearer {'x' * 60_000}",
        "Bearer \xff\xfe",
        "cw_0123456789abcdef_" + "A" * 43,
    ],
)
def test_a_wrong_key_opens_nothing(client: FlaskClient, header: str) -> None:
    """401, and the challenge says that the token is not valid."""
    response = client.get("/v1/api-keys", headers={"Authorization": header})

    assert (401, "INVALID_KEY") == refusal_of(response)
    assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]


def test_another_scheme_is_told_the_right_one(client: FlaskClient) -> None:
    """Nothing is wrong with the key: it has not been looked at."""
    response = client.get("/v1/api-keys", headers={"Authorization": "Basic abc"})

    assert (401, "INVALID_KEY") == refusal_of(response)
    assert "use Authorization: Bearer <key>" == json.loads(response.data)["detail"]


def test_the_root_leads_on(client: FlaskClient) -> None:
    """Without a key, and each of its links is there; the page of the reference with a slash at its end too."""
    answer = client.get("/")

    assert 200 == answer.status_code
    links = (answer.get_json() or {})["links"]
    assert {"docs", "openapi", "livez", "readyz"} == set(links)
    assert [200] * 4 == [client.get(link).status_code for link in links.values()]
    assert client.get("/docs").data == client.get("/docs/").data


def test_missing_and_unknown_fields_are_told_in_the_same_words(client: FlaskClient, admin: Headers) -> None:
    """Whether a model refuses a body, or a view that reads it by hand."""
    for path, required in (("/v1/api-keys", "name"), ("/v1/templates", "name"), ("/v1/claims", "user_id")):
        errors = json.loads(client.post(path, json={"colour": "red"}, headers=admin).data)["errors"]
        said = {error["field"]: error["message"] for error in errors}
        assert ("is required", "unknown field") == (said[required], said["colour"]), path
        not_an_object = json.loads(client.post(path, json=[], headers=admin).data)["errors"]
        assert [{"field": "", "message": "must be a JSON object"}] == not_an_object, path


def test_a_key_without_the_scope_is_told_which_one_it_lacks(client: FlaskClient, services: Services) -> None:
    """403, before the body is looked at."""
    response = client.post("/v1/api-keys", data=b"{", headers=key_header(services, "storefront", "ops"))

    assert (403, "FORBIDDEN") == refusal_of(response)
    assert ["admin"] == json.loads(response.data)["scopes"]
    assert "admin" in json.loads(response.data)["detail"]


def test_the_scheme_of_a_key_may_be_spelt_in_any_case(client: FlaskClient, admin: Headers) -> None:
    """RFC 9110: schemes are case-insensitive."""
    header = admin["Authorization"].replace("Bearer", "bEARER")

    assert 200 == client.get("/v1/api-keys", headers={"Authorization": header}).status_code


def test_an_application_with_a_view_that_names_no_scope_does_not_start(app: OpenAPI) -> None:
    """A new address is closed until somebody says who may use it."""
    app.add_url_rule("/v1/forgotten", endpoint="forgotten", view_func=lambda: "secret")

    with pytest.raises(RuntimeError, match="forgotten"):
        guard_views(app)


@pytest.mark.parametrize("scopes", [(), ("root",), ("admin", "root")])
def test_a_view_cannot_be_opened_to_a_scope_that_does_not_exist(scopes: tuple[str, ...]) -> None:
    """A mistyped scope is found at the start, not at the first call."""
    with pytest.raises(ValueError, match="storefront"):
        require(*scopes)


def test_an_unknown_address_is_not_found(client: FlaskClient, admin: Headers) -> None:
    """Also another spelling of a known one: no redirect loses a body."""
    for path in ("/nope", "/v1/api-keys/", "//v1/api-keys", "/v1//api-keys", "/v1/API-KEYS", "/static/x"):
        assert (404, "NOT_FOUND") == refusal_of(client.post(path, headers=admin)), path


def test_a_wrong_method_is_told_the_right_ones(client: FlaskClient) -> None:
    """405 with Allow."""
    response = client.put("/v1/api-keys")

    assert (405, "METHOD_NOT_ALLOWED") == refusal_of(response)
    assert {"GET", "HEAD", "POST", "OPTIONS"} == set(response.headers["Allow"].split(", "))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/users/a%00b/coupons", (404, "NOT_FOUND")),
        ("/v1/claim-center?user_id=a%00b", (422, "VALIDATION_FAILED")),
        ("/v1/api-keys?limit=0", (422, "VALIDATION_FAILED")),
        ("/v1/api-keys?limit=201", (422, "VALIDATION_FAILED")),
        ("/v1/api-keys?limit=x", (422, "VALIDATION_FAILED")),
        ("/v1/api-keys?cursor=%00", (422, "VALIDATION_FAILED")),
        ("/v1/api-keys?cursor=nonsense", (422, "VALIDATION_FAILED")),
        ("/v1/api-keys?cursor=%ED%A0%80", (422, "VALIDATION_FAILED")),
        ("/v1/api-keys?cursor=WyJub3ciLCJ4Il0=", (422, "VALIDATION_FAILED")),
        ("/v1/api-keys?cursor=WyIyMDI2LTAxLTAxIiwieCJd", (422, "VALIDATION_FAILED")),
        ("/v1/dead-letters?cursor=W1tbW1tb", (422, "VALIDATION_FAILED")),
        ("/v1/dead-letters?cursor=WyJjYXJlIiw5OTk5OTk5OTk5OTk5OTk5OTk5OTksImEiXQ==", (422, "VALIDATION_FAILED")),
        ("/v1/api-keys?colour=red", (422, "VALIDATION_FAILED")),
    ],
)
def test_an_address_that_cannot_be_meant_is_told_why(
    client: FlaskClient, admin: Headers, path: str, expected: tuple[int, str]
) -> None:
    """U+0000, half a surrogate pair, a limit out of range, a cursor no page gave."""
    assert expected == refusal_of(client.get(path, headers=admin))


@pytest.mark.parametrize("octets", [b"a\xed\xa0\x80b", b"\xff", b"a\x00b"])
def test_an_address_that_is_no_text_is_not_found(client: FlaskClient, admin: Headers, octets: bytes) -> None:
    """Neither half of a surrogate pair nor any other bytes are taken for some character."""
    path = f"/v1/users/{octets.decode('latin-1')}/coupons"

    assert (404, "NOT_FOUND") == refusal_of(client.get("/", headers=admin, environ_overrides={"PATH_INFO": path}))


@pytest.mark.parametrize("text", ["0", "007", "-1", "+1", "1.0", "1e3", "x", "٣", "9223372036854775808", "9" * 400])
def test_an_identity_nobody_was_given_is_not_found(client: FlaskClient, admin: Headers, text: str) -> None:
    """404 with the code of the resource."""
    assert (404, "TEMPLATE_NOT_FOUND") == refusal_of(client.get(f"/v1/templates/{text}", headers=admin))
    response = client.get(f"/v1/claims/{text}", headers=admin)
    assert (404, "CLAIM_NOT_FOUND") == refusal_of(response)
    assert "there is no such claim" == json.loads(response.data)["detail"]


def test_a_callers_request_id_is_given_back(client: FlaskClient) -> None:
    """When it is 1 to 128 visible ASCII characters."""
    for usable in ("a", "req-1/2:3", "x" * 128):
        assert usable == client.get("/livez", headers={"X-Request-Id": usable}).headers["X-Request-Id"]


def test_another_request_id_is_made_anew(client: FlaskClient) -> None:
    """None, or one that could disturb a log: each answer has an id of its own."""
    unusable = ["", "a b", "x" * 129, "é", "a\tb"]

    made = [client.get("/livez", headers={"X-Request-Id": text}).headers["X-Request-Id"] for text in unusable]
    made.append(client.get("/livez").headers["X-Request-Id"])

    assert not set(made) & set(unusable)
    assert len(made) == len(set(made))
    assert 1 == len(client.get("/nope").headers.getlist("X-Request-Id"))


def test_an_unexpected_error_is_a_problem_without_its_trace(
    app: OpenAPI, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500; the trace is in the log, under the request's id."""

    def broken() -> Any:
        raise RuntimeError("the secret is 42")

    app.add_url_rule("/v1/broken", endpoint="broken", view_func=open_to_all(broken))
    logged: list[dict[str, Any]] = []
    monkeypatch.setattr("web.error_answer.log.error", lambda event, **values: logged.append(values), raising=False)

    with caplog.at_level(logging.CRITICAL):
        response = app.test_client().get("/v1/broken", headers={"X-Request-Id": "req-7"})

    assert (500, "INTERNAL_ERROR") == refusal_of(response)
    assert b"42" not in response.data and b"Traceback" not in response.data
    assert "req-7" == logged[0]["request_id"]


def test_the_views_of_other_threads_do_not_share_a_request_id(app: OpenAPI) -> None:
    """What is bound to a request's log lines is gone when it ends."""
    import structlog

    app.test_client().get("/livez")

    assert {} == structlog.contextvars.get_contextvars()
