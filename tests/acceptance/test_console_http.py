"""The console of a running installation: served beside the API, told by the fronts what they answer."""

from __future__ import annotations

import json
import time
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

from tests.support.http_system import System

WAIT_S = 20.0


def _ask(system: System, method: str, path: str, cookie: str = "", body: str | None = None) -> tuple[int, str, str]:
    """Status, text and the cookie that was set."""
    connection = HTTPConnection(urlsplit(system.base_url).netloc, timeout=10)
    headers = {"Cookie": cookie} if cookie else {}
    if body is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    read = answer.status, answer.read().decode(), (answer.getheader("Set-Cookie") or "").partition(";")[0]
    connection.close()
    return read


def test_an_operator_logs_in_and_sees_what_the_fronts_answer(system: System) -> None:
    """Every process of the front adds its part, without anybody's asking."""
    made = system.admin.ask("POST", "/v1/api-keys", {"name": "console", "scopes": ["admin", "ops"]}).ok(201)
    template_id = system.desk.open(total_quantity=3)
    status, _, cookie = _ask(system, "POST", "/console/login", body=urlencode({"key": made["key"]}))
    assert 303 == status

    for user in range(5):
        system.front.claim(template_id, f"console-{user}")

    wanted = {"ACCEPTED": 3, "SOLD_OUT": 2}
    told: dict[str, int] = {}
    deadline_s = time.monotonic() + WAIT_S
    while told != wanted and time.monotonic() < deadline_s:
        told = _told(system, template_id, cookie)
    assert wanted == told
    assert 200 == _ask(system, "GET", f"/console/templates/{template_id}", cookie)[0]
    assert 200 == _ask(system, "GET", "/console/static/console.css")[0]


def _told(system: System, template_id: str, cookie: str) -> dict[str, int]:
    status, text, _ = _ask(system, "GET", f"/console/data/live/{template_id}", cookie)
    assert 200 == status
    told: dict[str, int] = {}
    for outcomes in json.loads(text)["seconds"].values():
        for outcome, number in outcomes.items():
            told[outcome] = told.get(outcome, 0) + number
    return told
