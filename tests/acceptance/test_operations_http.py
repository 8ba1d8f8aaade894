"""Health, metrics and the reader of the API's description."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from coupon_workers.runtime import health
from coupon_workers.runtime.services import Services
from tests.support.flask_caller import Headers, key_header, refusal_of


@pytest.fixture
def ops(services: Services) -> Headers:
    """The header of a key for operations and the storefront."""
    return key_header(services, "ops", "storefront")


def test_health_is_open_and_tells_each_part(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Liveness depends on nothing; readiness names its parts, which may take their time here."""
    monkeypatch.setattr(health, "PROBE_S", 30.0)
    assert {"status": "ok"} == client.get("/livez").json

    ready = client.get("/readyz")

    assert (200, "ok") == (ready.status_code, (ready.json or {})["status"])
    assert {"redis", "postgresql", "broker", "queued_claims", "scheduler"} == set((ready.json or {})["parts"])


def test_metrics_tell_times_and_depths(client: FlaskClient, ops: Headers) -> None:
    """In Prometheus' text format, by route and never by path."""
    client.get("/v1/claims/12345", headers=ops)

    response = client.get("/metrics", headers=ops)

    assert response.content_type.startswith("text/plain; version=")
    text = response.get_data(as_text=True)
    assert 'coupon_request_seconds_count{endpoint="GET /v1/claims/{claim_id}"}' in text
    assert "12345" not in text
    assert 'coupon_queue_depth{queue="settle"} 0.0' in text
    assert "coupon_pending_claims 0.0" in text


def test_the_reader_asks_nobody_else(client: FlaskClient) -> None:
    """Page and script come from here; the page names no other server, and its policy lets a browser reach none."""
    page = client.get("/docs")
    text = page.get_data(as_text=True)

    assert 200 == page.status_code
    assert "//" not in text
    assert 'load-fonts="false"' in text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "http" not in page.headers["Content-Security-Policy"]
    assert 200 == client.get("/docs/js/rapidoc-min.js").status_code
    assert (404, "NOT_FOUND") == refusal_of(client.get("/docs/../templates/__init__.py"))
    assert (404, "NOT_FOUND") == refusal_of(client.get("/docs/%2e%2e/__init__.py"))
