"""The API's reader at ``/docs`` in a browser: every operation is shown whole, with what was really sent."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import NewReader
from tests.support.http_shop import Shop
from web.described_example import NAME
from web.json_body import JSON_TYPE

RENDERED_MS = 60_000

SHOWN = """
operations => operations.map(operation => {
    operation.scrollIntoView();
    const [asked, answers] = ["api-request", "api-response"].map(each => operation.querySelector(each).shadowRoot);
    return {
        name: operation.querySelector("[part~=label-operation-method]").textContent.trim().toUpperCase()
            + " " + operation.querySelector("[part~=label-operation-path]").textContent.trim(),
        statuses: [...answers.querySelectorAll("[part~=btn-response-status]")].map(each => each.textContent.trim()),
        bodies: [...asked.querySelectorAll("textarea[data-ptype='application/json']")].map(field => field.value),
        examples: [...answers.querySelectorAll("json-tree")].map(tree => tree.data),
    };
})
"""
"""Of each operation on the page: its name, its body in JSON, the statuses to choose from, all its examples."""


def test_every_operation_shows_its_answers(shop: Shop, new_reader: NewReader) -> None:
    """Each status of the document, each example as it was sent, also where something in it is null; no error."""
    operations = _operations(shop)
    reader = new_reader()
    reader.page.goto("/docs", wait_until="commit")
    expect(reader.page.locator("api-response .response-panel")).to_have_count(len(operations), timeout=RENDERED_MS)

    shown = {each.pop("name"): each for each in reader.page.locator(".expanded-endpoint-body").evaluate_all(SHOWN)}

    assert [] == reader.complaints
    assert operations.keys() == shown.keys()
    for name, operation in operations.items():
        body, answers = operation.get("requestBody", {}), operation["responses"]
        assert sorted(answers) == shown[name]["statuses"], name
        assert _sent(body) == [json.loads(text) for text in shown[name]["bodies"]], name
        missing = [sent for answer in answers.values() for sent in _sent(answer) if sent not in shown[name]["examples"]]
        assert [] == missing, name


def _operations(shop: Shop) -> dict[str, Any]:
    return {
        f"{method.upper()} {path}": operation
        for path, item in (shop.app.test_client().get("/openapi.json").json or {})["paths"].items()
        for method, operation in item.items()
    }


def _sent(part: dict[str, Any]) -> list[Any]:
    examples = part.get("content", {}).get(JSON_TYPE, {}).get("examples", {})
    return [examples[NAME]["value"]] if examples else []
