"""The audit log over HTTP: every write of an operator leaves its row, and no other way leads into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from coupon_workers.reconciliation import repair
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from tests.support.audit_office import AUDITED, EXEMPT, Office, of_risk, of_templates, of_the_back_office
from tests.support.http_caller import Caller
from tests.support.http_shop import Shop
from web.auth import OPERATED, scopes_of
from web.path_template import path_template

LOG = "/v1/audit-log"


def _writes(shop: Shop) -> set[str]:
    """What operators may write, by the application's own routes."""
    return {
        f"{method} {path_template(rule.rule)}"
        for rule in shop.app.url_map.iter_rules()
        if OPERATED & (scopes_of(shop.app.view_functions[rule.endpoint]) or frozenset())
        for method in (rule.methods or set()) - {"GET", "HEAD", "OPTIONS"}
    }


def test_every_write_of_operators_is_audited_or_exempt(shop: Shop) -> None:
    """A new one cannot be forgotten; the described addresses are those that are served (test_openapi)."""
    assert _writes(shop) == AUDITED.keys() | EXEMPT.keys()


@pytest.fixture
def office(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    """With a repair that any finding can be given."""
    assert services.settings.broker_url is not None
    monkeypatch.setitem(repair.REPAIRS, next(iter(RepairName)), lambda *_: {"done": True})
    broker = client_without_retries(services.settings.broker_url.get_secret_value(), 2_000)
    yield Office(services, broker)
    broker.close()


def _log(reader: Caller, query: str = "") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = reader.ask("GET", f"{LOG}?limit=200{query}").ok()["items"]
    return items


@pytest.mark.parametrize("operation", sorted(AUDITED))
def test_a_write_leaves_one_row_with_who_and_what(office: Office, operation: str) -> None:
    """With the key and the id of the request; once, though it is sent again under its key; and without a secret."""
    method = operation.partition(" ")[0]
    path, body = (of_templates(office) | of_the_back_office(office) | of_risk(office))[operation]()
    known = len(_log(office.other))

    answer = office.boss.ask(method, path, body, Idempotency_Key="k", X_Request_Id="req-1")
    again = office.boss.ask(method, path, body, Idempotency_Key="k", X_Request_Id="req-2")

    assert (answer.status // 100, answer.status) == (2, again.status), answer.body
    entry, *others = _log(office.other)
    assert (known, AUDITED[operation], "req-1", "test") == (
        len(others), entry["action"], entry["request_id"], entry["key_name"],
    )  # fmt: skip
    secret = answer.json.get("secret") or answer.json.get("key") or "hush"
    assert secret not in json.dumps(entry)
    assert "hush" not in json.dumps(entry)
    assert entry["subject"].partition(":")[2] in path + answer.body.decode()


def test_what_was_refused_leaves_no_row(office: Office) -> None:
    """Nor does what changes nothing."""
    template_id = office.desk.open()
    known = _log(office.other)

    office.boss.ask("POST", f"/v1/templates/{template_id}/resume").problem(409, "INVALID_STATUS")
    office.boss.ask("POST", "/v1/dead-letters/none/discard").problem(404, "DEAD_LETTER_NOT_FOUND")
    office.boss.ask("PATCH", f"/v1/templates/{template_id}", {"notify": True}).ok()
    office.boss.ask("POST", "/v1/templates", {}).problem(422, "VALIDATION_FAILED")

    assert known == _log(office.other)


def test_the_log_is_read_by_what_is_asked(office: Office) -> None:
    """By subject, action, key and time, in pages, newest first."""
    template_id = office.desk.open()
    office.boss.ask("POST", f"/v1/templates/{template_id}/pause").ok()
    office.boss.ask("PATCH", f"/v1/templates/{template_id}", {"name": "later"}).ok()

    of_template = _log(office.other, f"&subject=template:{template_id}")
    first = office.other.ask("GET", f"{LOG}?subject=template:{template_id}&limit=3").ok()
    second = office.other.ask("GET", f"{LOG}?subject=template:{template_id}&cursor={first['next_cursor']}").ok()

    assert ["template.change", "template.pause", "template.publish", "template.create"] == [
        entry["action"] for entry in of_template
    ]
    change, pause = of_template[:2]
    assert ({"name": "Double Eleven 100-20"}, {"name": "later"}) == (change["before"], change["after"])
    assert ({"status": "active"}, {"status": "paused"}) == (pause["before"], pause["after"])
    assert of_template == [*first["items"], *second["items"]]
    assert [pause] == _log(office.other, "&action=template.pause")
    assert {"template.change", "template.pause"} == {
        entry["action"] for entry in _log(office.other, f"&key_id={change['key_id']}")
    }
    assert [] == _log(office.other, "&since=2100-01-01T00:00:00Z")
    assert [] == _log(office.other, "&until=2020-01-01T00:00:00Z")
    assert {"since"} == set(office.other.ask("GET", f"{LOG}?since=2026").bad_fields())


def test_only_administrators_read_it(shop: Shop) -> None:
    """It names keys and what they do."""
    for scope in ("storefront", "orders", "ops"):
        shop.caller(scope).ask("GET", LOG).problem(403, "FORBIDDEN")


@pytest.mark.parametrize("statement", ["DELETE FROM audit_log", "UPDATE audit_log SET operator = 'nobody'"])
def test_a_row_is_neither_changed_nor_deleted(shop: Shop, statement: str) -> None:
    """By nobody who comes with the platform's own SQL."""
    shop.desk.draft()

    with (
        pytest.raises(ProgrammingError, match="neither changed nor deleted"),
        shop.services.engine.begin() as connection,
    ):
        connection.execute(text(statement))
