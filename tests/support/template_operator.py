"""An operator of templates over HTTP: a template body with every field, and what is asked with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from coupon_workers.runtime.clock import rfc3339
from tests.support.flask_caller import Headers

NOW = datetime.now(UTC).replace(microsecond=0)
BODY: dict[str, Any] = {
    "template_no": "TPL-2026-1111",
    "name": "Double Eleven 100-20",
    "type": "amount_off",
    "currency": "CNY",
    "amount": 2000,
    "threshold": 10_000,
    "total_quantity": 1000,
    "per_user_limit": 1,
    "per_user_daily_limit": None,
    "claim_start": rfc3339(NOW - timedelta(hours=1)),
    "claim_end": rfc3339(NOW + timedelta(days=1)),
    "validity": {"mode": "relative", "days": 7, "start_after_days": 0},
    "timezone": "Asia/Shanghai",
    "scope": {
        "products": {"include": [], "exclude": []},
        "categories": {"include": [], "exclude": []},
        "channels": [],
        "user_tags": [],
    },
    "stacking": {"exclusive": False, "group": None, "priority": 100},
    "refund": {"return": "full_only", "threshold": "keep", "expired": "expire", "grace_days": 0},
    "transferable": False,
    "restock_on_revoke": False,
    "notify": True,
    "channels_claim": ["app", "h5"],
    "risk_policy": None,
    "approval_required": None,
}


class Operator:
    """A client of the API with the header of a key."""

    def __init__(self, client: FlaskClient, headers: Headers) -> None:
        self._client = client
        self._headers = headers

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> TestResponse:
        """One request; ``body`` is sent as JSON, or as it is when it is bytes."""
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        content = {"Content-Type": "application/json"} if raw is not None else {}
        return self._client.open(path, method=method, data=raw, headers=self._headers | content | given)

    def created(self, **fields: Any) -> dict[str, Any]:
        """A new template; without a number unless one is given."""
        response = self.ask("POST", "/v1/templates", BODY | {"template_no": None} | fields)
        assert 201 == response.status_code, response.text
        return dict(response.get_json())

    def act(self, template: dict[str, Any], action: str) -> TestResponse:
        """POST to one of the template's actions."""
        return self.ask("POST", f"/v1/templates/{template['template_id']}/{action}")

    def read(self, template: dict[str, Any]) -> dict[str, Any]:
        """The template at this moment."""
        return dict(self.ask("GET", f"/v1/templates/{template['template_id']}").get_json())


def problem_of(response: TestResponse, status: int, code: str) -> dict[str, Any]:
    """The problem that is answered, of this status and code."""
    assert (status, "application/problem+json") == (response.status_code, response.mimetype), response.text
    problem = json.loads(response.text)
    assert code == problem["code"]
    return dict(problem)


def bad_fields(response: TestResponse) -> list[str]:
    """The fields that a 422 names, each once, sorted."""
    problem = problem_of(response, 422, "VALIDATION_FAILED")
    return sorted({error["field"] for error in problem["errors"]})
