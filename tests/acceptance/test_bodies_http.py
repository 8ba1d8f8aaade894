"""Bodies that cannot be read, break a rule or are too long: a precise 4xx each."""

from __future__ import annotations

import io
import json

import pytest
from flask.testing import FlaskClient

from coupon_workers.runtime.services import Services
from tests.support.flask_caller import Headers, key_header, refusal_of


@pytest.fixture
def admin(services: Services) -> Headers:
    """The header of an administrator's key."""
    return key_header(services, "admin")


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"{}", None, (415, "UNSUPPORTED_MEDIA_TYPE")),
        (b"{}", "text/plain", (415, "UNSUPPORTED_MEDIA_TYPE")),
        (b"a=1", "application/x-www-form-urlencoded", (415, "UNSUPPORTED_MEDIA_TYPE")),
        (b"{}", "application/jsonp", (415, "UNSUPPORTED_MEDIA_TYPE")),
        (b"", "application/json", (400, "MALFORMED_JSON")),
        (b"{", "application/json", (400, "MALFORMED_JSON")),
        (b"[" * 100_000, "application/json", (400, "MALFORMED_JSON")),
        (b'{"name": "a", "name": "b"}', "application/json", (400, "MALFORMED_JSON")),
        (b'{"name": NaN}', "application/json", (400, "MALFORMED_JSON")),
        (b"[]", "application/json", (422, "VALIDATION_FAILED")),
        (b'"{\\"name\\": 1}"', "application/json", (422, "VALIDATION_FAILED")),
        (b"null", "application/json", (422, "VALIDATION_FAILED")),
        (b'{"name": "\\ud800", "scopes": ["ops"]}', "application/json", (422, "VALIDATION_FAILED")),
        (b'{"name": "\\u0000", "scopes": ["ops"]}', "application/json", (422, "VALIDATION_FAILED")),
        (b'{"name": "n", "scopes": ["\\ud800"]}', "application/json; charset=utf-8", (422, "VALIDATION_FAILED")),
        (b'{"name": "n", "scopes": ["ops"], "signed": 1}', "application/json", (422, "VALIDATION_FAILED")),
        (b'{"name": "n", "scopes": ["ops"], "signed": "no"}', "application/json", (422, "VALIDATION_FAILED")),
    ],
)
def test_a_body_that_cannot_be_read_is_told_why(
    client: FlaskClient, admin: Headers, body: bytes, content_type: str | None, expected: tuple[int, str]
) -> None:
    """A precise 4xx, never 500."""
    response = client.post("/v1/api-keys", data=body, content_type=content_type, headers=admin)

    assert expected == refusal_of(response)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/v1/audit-log?subject=a%00b", (422, "VALIDATION_FAILED")),
        ("/v1/users/a%00b/tags", (404, "NOT_FOUND")),
    ],
)
def test_an_address_that_no_store_could_hold_is_refused(
    client: FlaskClient, admin: Headers, address: str, expected: tuple[int, str]
) -> None:
    """U+0000, before one is asked for it."""
    assert expected == refusal_of(client.get(address, headers=admin))


def test_fields_that_break_a_rule_are_all_named(client: FlaskClient, admin: Headers) -> None:
    """Unknown ones too, and what was sent is not repeated."""
    body = {"name": "", "scopes": ["sesame"], "signed": "perhaps", "colour": "red"}

    response = client.post("/v1/api-keys", json=body, headers=admin)

    assert (422, "VALIDATION_FAILED") == refusal_of(response)
    problem = json.loads(response.data)
    assert {"name", "scopes.0", "signed", "colour"} == {error["field"] for error in problem["errors"]}
    assert b"sesame" not in response.data


def test_a_body_over_a_mebibyte_is_too_large(client: FlaskClient, admin: Headers) -> None:
    """413 whether it tells its length or comes in chunks; a byte less is read."""
    limit = 1024 * 1024
    json_type = "application/json"

    told = client.post("/v1/api-keys", data=b" " * (limit + 1), content_type=json_type, headers=admin)
    chunked = client.post(
        "/v1/api-keys",
        input_stream=io.BytesIO(b" " * (limit + 1)),
        content_type=json_type,
        headers=admin,
        environ_overrides={"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked"},
    )
    allowed = client.post("/v1/api-keys", data=b" " * limit, content_type=json_type, headers=admin)

    assert (413, "BODY_TOO_LARGE") == refusal_of(told)
    assert (413, "BODY_TOO_LARGE") == refusal_of(chunked)
    assert (400, "MALFORMED_JSON") == refusal_of(allowed)


def test_a_body_that_ends_early_is_not_taken_for_whole(client: FlaskClient, admin: Headers) -> None:
    """The client went away in its midst."""
    response = client.post(
        "/v1/api-keys",
        input_stream=io.BytesIO(b"{}"),
        content_type="application/json",
        headers=admin,
        environ_overrides={"CONTENT_LENGTH": "10"},
    )

    assert (400, "INCOMPLETE_BODY") == refusal_of(response)
