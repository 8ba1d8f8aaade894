"""The client against the application: every operation has a method, and what it is said to answer is answered."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from typing import Any, NotRequired, get_origin, get_type_hints

import httpx
import pytest
from openapi_schema_validator import OAS31Validator

import coupon_workers.client
from coupon_workers.client import Conflict, CouponClient, InvalidRequest, NotAllowed, NotFound
from coupon_workers.runtime.services import Services
from tests.support.api_tour import Tour, worker_broker
from tests.support.http_desk import template_body
from tests.support.http_shop import Shop
from tests.support.notify_receiver import Receiver
from web.app import described_application
from web.described_example import FILE, NAME

TYPES = {
    name: kind
    for module in pkgutil.iter_modules(coupon_workers.client.__path__)
    if module.name.endswith("_answer")
    for name, kind in vars(importlib.import_module(f"coupon_workers.client.{module.name}")).items()
    if hasattr(kind, "__required_keys__")
}
"""Every shape that the client names."""


WITHOUT_EXAMPLE = {
    "PATCH /v1/templates/{template_id}",  # 202, for a second person
    "POST /v1/batches/{batch_no}/approve",
    "POST /v1/lotteries/{lottery_id}/approve",
}
"""Answers that the walk does not come by."""


@pytest.fixture
def tour(services: Services) -> Tour:
    """A visitor of the shop, whose webhooks may lead to this machine."""
    return Tour(Shop(services, claim_rate=0, webhook_private=True))


@pytest.fixture
def admin(tour: Tour) -> CouponClient:
    """An operator."""
    return tour.client("admin")


def test_every_operation_has_a_method(tour: Tour) -> None:
    """Walked through by the client alone: each is answered as it hoped, and none is left out."""
    broker = worker_broker(tour.shop)
    with Receiver().serving() as receiver:
        tour.walk(receiver, broker)
    broker.close()

    described = {
        f"{method.upper()} {path}" for path, item in described_application().api_doc["paths"].items() for method in item
    }
    left = described - {exchange.operation for exchange in tour.recorder.exchanges}
    _compare_examples(tour)
    assert set() == left, "give them a method in coupon_workers/client/, and a step in tests/support/api_tour.py"


def _compare_examples(tour: Tour) -> None:
    """The examples of the description are what was asked and answered just now, but for values."""
    found = tour.recorder.examples()
    if os.environ.get("RECORD_EXAMPLES"):
        FILE.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    shown = json.loads(FILE.read_text(encoding="utf-8"))
    assert set(shown) == set(found), "record them: RECORD_EXAMPLES=1"
    for name, example in shown.items():
        differs = [part for part in ("asked", "answered") if _names(example[part]) != _names(found[name][part])]
        assert [] == differs, f"{name}: record it: RECORD_EXAMPLES=1"


def _names(value: Any) -> Any:
    """The names of an example's members; of what is itself keyed by the data there may be others."""
    return {name: sorted(item) if isinstance(item, dict) else None for name, item in (value or {}).items()}


def test_the_examples_are_what_the_schemas_say() -> None:
    """Of requests and of answers, each against its own."""
    document = described_application().api_doc

    for path, item in document["paths"].items():
        for method, operation in item.items():
            parts = [operation.get("requestBody", {}), *operation["responses"].values()]
            for content in (content for part in parts for content in part.get("content", {}).values()):
                if NAME in content.get("examples", {}) and "schema" in content:
                    schema = content["schema"] | {"components": document["components"]}
                    example = content["examples"][NAME]["value"]
                    errors = [error.message for error in OAS31Validator(schema).iter_errors(example)]
                    assert [] == errors, (method, path)


def test_every_operation_has_examples() -> None:
    """Of its body, where it is JSON, and of an answer; but where the walk has none to show."""
    operations = {
        f"{method.upper()} {path}": operation
        for path, item in described_application().api_doc["paths"].items()
        for method, operation in item.items()
    }

    bodies = {
        name
        for name, operation in operations.items()
        if "examples" not in operation.get("requestBody", {}).get("content", {}).get("application/json", ["examples"])
    }
    answers = {
        name
        for name, operation in operations.items()
        for content in [answer.get("content", {}) for status, answer in operation["responses"].items() if status < "3"]
        if "application/json" in content and "examples" not in content["application/json"]
    }
    assert [] == sorted(bodies)
    assert sorted(WITHOUT_EXAMPLE) == sorted(answers)


def test_the_types_are_those_of_the_description() -> None:
    """Name by name and field by field; what may be absent there may be absent here."""
    schemas: dict[str, Any] = described_application().api_doc["components"]["schemas"]

    for name, kind in TYPES.items():
        if name in ("ClaimBody", "OrderBody"):  # the description spells them within others
            continue
        schema = schemas[name]
        fields = get_type_hints(kind, include_extras=True)
        assert set(schema["properties"]) == set(fields), name
        assert set(schema.get("required", ())) == {
            field for field, its in fields.items() if get_origin(its) is not NotRequired
        }, name


def test_refusals_are_errors_by_their_status(tour: Tour, admin: CouponClient) -> None:
    """With code, detail, fields, evidence and the request's id."""
    draft = admin.templates.create(template_body())["template_id"]

    with pytest.raises(NotFound, match="TEMPLATE_NOT_FOUND") as unknown:
        admin.templates.read("1")
    with pytest.raises(InvalidRequest) as broken:
        admin.templates.create({"name": ""})
    with pytest.raises(Conflict) as refused:
        admin.templates.pause(draft)
    with pytest.raises(NotAllowed, match="FORBIDDEN"):
        tour.client("orders").templates.pause(draft)

    assert unknown.value.request_id and unknown.value.identity is None
    assert {"name", "type", "currency"} <= {field for field, _ in broken.value.errors}
    assert ("INVALID_STATUS", "draft") == (refused.value.code, refused.value.evidence["current_status"])
    assert refused.value.identity


def test_the_caller_s_own_key_makes_two_calls_one(admin: CouponClient) -> None:
    """Also from two processes; with a key of its own, each call is another."""
    body = template_body()

    made = [admin.templates.create(body, idempotency_key="campaign-7")["template_id"] for _ in range(2)]
    others = [admin.templates.create(body)["template_id"] for _ in range(2)]

    assert [made[0]] == made[1:]
    assert 3 == len({*made, *others})


def test_a_key_that_demands_signatures_gets_them(tour: Tour, admin: CouponClient) -> None:
    """Reads with a query, and writes with a body; without them it is refused."""
    made = admin.back_office.make_key("signed", ["admin"], signed=True)
    http = httpx.Client(base_url="http://shop", transport=tour.recorder.over(tour.shop.app))
    key = made["key"]
    assert key is not None

    signed = CouponClient("http://shop", key, signed=True, http=http)
    template_id = signed.templates.create(template_body(name="双十一"))["template_id"]
    with pytest.raises(NotAllowed, match="INVALID_SIGNATURE"):
        CouponClient("http://shop", key, http=http).templates.read(template_id)

    assert [template_id] == [each["template_id"] for each in signed.templates.every(status="draft")]
    assert signed.batches.tags("a/b+c")["tags"] == []


def test_all_pages_are_read(tour: Tour, admin: CouponClient) -> None:
    """One after the other, each when it is needed."""
    template_id = admin.templates.publish(admin.templates.create(template_body(total_quantity=60))["template_id"])
    front = tour.client("storefront")
    claims = [{"template_id": template_id["template_id"], "user_id": "ann", "request_id": f"r{n}"} for n in range(60)]

    front.claims.claim_many(claims)  # type: ignore[arg-type]  # a list of plain dicts
    tour.shop.settle(template_id["template_id"])

    assert 60 == len({coupon["coupon_no"] for coupon in front.wallet.coupons("ann")})
