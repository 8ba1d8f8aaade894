"""API keys over HTTP: made, shown once, listed, revoked."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from flask.testing import FlaskClient

from coupon_workers.access.api_key import create_key, revoke_key
from coupon_workers.runtime.services import Services
from tests.support.flask_caller import Headers, key_header, refusal_of


@pytest.fixture
def admin(services: Services) -> Headers:
    """The header of an administrator's key."""
    return key_header(services, "admin")


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
    assert (401, "INVALID_KEY") == refusal_of(client.get("/v1/queues", headers=headers))


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

    assert (401, "INVALID_KEY") == refusal_of(client.get("/v1/queues", headers=headers))


def test_a_key_that_does_not_exist_cannot_be_revoked(client: FlaskClient, admin: Headers) -> None:
    """404, whatever text is given for its id."""
    for key_id in ("0123456789abcdef", "x", "%20", "a'b", "é"):
        assert (404, "API_KEY_NOT_FOUND") == refusal_of(client.delete(f"/v1/api-keys/{key_id}", headers=admin))


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00"])
def test_a_cursor_of_no_page_is_refused(client: FlaskClient, admin: Headers, instant: str) -> None:
    """Also one that reads as an instant which no database knows."""
    cursor = base64.urlsafe_b64encode(json.dumps([instant, "x"]).encode()).decode()

    assert (422, "VALIDATION_FAILED") == refusal_of(client.get(f"/v1/api-keys?cursor={cursor}", headers=admin))


def test_a_cursor_may_have_any_offset(client: FlaskClient, admin: Headers) -> None:
    """Larger than PostgreSQL takes, and an instant all the same."""
    cursor = base64.urlsafe_b64encode(json.dumps(["2026-01-01T00:00:00+23:59", "x"]).encode()).decode()

    assert 200 == client.get(f"/v1/api-keys?cursor={cursor}", headers=admin).status_code


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
