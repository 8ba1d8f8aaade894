"""For tests that hold Flask's own client: the header of a key, and what a refusal says."""

from __future__ import annotations

import json

from werkzeug.test import TestResponse

from coupon_workers.access.api_key import create_key
from coupon_workers.runtime.services import Services

Headers = dict[str, str]


def key_header(services: Services, *scopes: str) -> Headers:
    """The header of a new key of these scopes."""
    return {"Authorization": f"Bearer {create_key(services.engine, name='test', scopes=scopes).key}"}


def refusal_of(response: TestResponse) -> tuple[int, str]:
    """Status and code, after a look at the form."""
    assert "application/problem+json" == response.content_type
    body = json.loads(response.data)
    assert {"type", "title", "status", "code", "detail", "errors"} <= set(body)
    assert response.status_code == body["status"]
    assert body["code"] == body["code"].upper()
    assert all({"field", "message"} == set(error) for error in body["errors"])
    assert response.headers["X-Request-Id"]
    return body["status"], body["code"]
