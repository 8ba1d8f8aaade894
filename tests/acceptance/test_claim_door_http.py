"""Claims that are answered before Flask sees them: in every case what Flask's way would have answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from coupon_workers.claiming.front import ClaimFront
from coupon_workers.errors import ClockWentBack, StoreUnavailable
from tests.support.http_caller import JSON, Caller, claim_of
from tests.support.http_reply import Reply
from tests.support.http_shop import Shop, empty_stores
from web.claim_door import VIEW

ODD_TYPE = f"{JSON}; charset=utf-8"
"""Just as good, but not how nearly all clients spell it: Flask's way."""


@pytest.fixture(scope="module")
def template_id(lasting_shop: Shop) -> str:
    """Open, one a user, for one channel; claimed by ann."""
    made: str = lasting_shop.desk.open(per_user_limit=1, channels_claim=["app"])
    lasting_shop.front.claimed(made, "ann")
    return made


@pytest.fixture(scope="module", autouse=True)
def _empty_afterwards(lasting_shop: Shop) -> Iterator[None]:
    yield
    empty_stores(lasting_shop.services)


def both_ways(caller: Caller, body: bytes) -> tuple[Reply, Reply]:
    """The answers of the door and of Flask to the same."""
    by_door = caller.ask("POST", "/v1/claims", body)
    return by_door, caller.ask("POST", "/v1/claims", body, Content_Type=ODD_TYPE)


def told(reply: Reply) -> tuple[int, dict[str, str], bytes]:
    """All of an answer but the request's own id."""
    headers = {name: value for name, value in reply.headers.items() if name != "x-request-id"}
    assert "x-request-id" in reply.headers
    return reply.status, headers, reply.body


CLAIM = claim_of("1", "ann", "r1")

BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"user_id": "\xff"}',
    "a list": b"[]",
    "a name twice": b'{"user_id": "a", "user_id": "b"}',
    "too deep": b"[" * 5_000,
    "U+0000": json.dumps(CLAIM | {"request_id": "a\0"}).encode(),
    "a number out of range": b'{"template_id": 1e999}',
    "no fields": b"{}",
    "a field too many": json.dumps(CLAIM | {"color": "red"}).encode(),
    "a user with a space": json.dumps(CLAIM | {"user_id": "a b"}).encode(),
    "an unknown template": json.dumps(CLAIM).encode(),
    "a long body": json.dumps(CLAIM | {"channel": "x" * 20_000}).encode(),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_refused_is_refused_alike(lasting_shop: Shop, name: str) -> None:
    """Status, headers and every word."""
    by_door, by_flask = both_ways(lasting_shop.front, BODIES[name])

    assert by_door.status >= 400
    assert told(by_flask) == told(by_door)


@pytest.mark.parametrize(
    ("user", "fields", "status", "code"),
    [("bob", {"channel": "web"}, 403, "NOT_ELIGIBLE"), ("ann", {"request_id": "r2"}, 409, "LIMIT_REACHED")],
)
def test_what_the_gate_refuses_is_told_alike(
    lasting_shop: Shop, template_id: str, user: str, fields: dict[str, str], status: int, code: str
) -> None:
    """By one table."""
    by_door, by_flask = both_ways(lasting_shop.front, json.dumps(claim_of(template_id, user) | fields).encode())

    by_door.problem(status, code)
    assert told(by_flask) == told(by_door)


def test_an_accepted_claim_is_told_alike_when_it_is_asked_for_again(lasting_shop: Shop, template_id: str) -> None:
    """To the byte."""
    by_door, by_flask = both_ways(lasting_shop.front, json.dumps(claim_of(template_id, "ann")).encode())

    assert by_door.ok(200)["replayed"]
    assert told(by_flask) == told(by_door)


@pytest.mark.parametrize("who", ["nobody", "a stranger", "an order centre"])
def test_whom_the_view_is_closed_to_the_door_is_closed_to(lasting_shop: Shop, template_id: str, who: str) -> None:
    """By the scopes that the view names."""
    callers = {"nobody": lasting_shop.caller(), "an order centre": lasting_shop.caller("orders")}
    caller = callers.get(who) or Caller(lasting_shop.front.transport, "cw_0123456789abcdef_" + "x" * 43)

    by_door, by_flask = both_ways(caller, json.dumps(claim_of(template_id, "eve")).encode())

    assert by_door.status in (401, 403)
    assert told(by_flask) == told(by_door)


@pytest.mark.parametrize(
    ("error", "status"), [(StoreUnavailable("Redis", "gone"), 503), (ClockWentBack("by 1 s"), 503), (KeyError(1), 500)]
)
def test_what_breaks_is_told_alike(
    lasting_shop: Shop, template_id: str, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """By the table of errors."""

    def broken(front: ClaimFront, asked: Any) -> Any:
        raise error

    monkeypatch.setattr(ClaimFront, "claim", broken)

    by_door, by_flask = both_ways(lasting_shop.front, json.dumps(claim_of(template_id, "eve")).encode())

    assert status == by_door.status
    assert told(by_flask) == told(by_door)


def test_only_what_is_asked_oddly_reaches_the_view(
    lasting_shop: Shop, template_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain claim is answered without Flask."""
    seen: list[str] = []
    view: Callable[..., Any] = lasting_shop.app.view_functions[VIEW]

    def watched() -> Any:
        seen.append("view")
        return view()

    monkeypatch.setitem(lasting_shop.app.view_functions, VIEW, watched)

    both_ways(lasting_shop.front, json.dumps(claim_of(template_id, "ann")).encode())

    assert ["view"] == seen
