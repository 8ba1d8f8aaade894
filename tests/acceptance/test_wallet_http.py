"""A user's coupons over HTTP: all of them, in order, at this instant, and nobody else's (API.md, Wallet)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from coupon_workers.runtime.clock import rfc3339
from tests.support.http_caller import Caller, claim_of
from tests.support.http_shop import Shop

FIELDS = {
    "coupon_no", "template_id", "template_name", "user_id", "status", "type", "amount", "max_discount", "currency",
    "threshold", "valid_from", "valid_to", "source", "order_no", "issued_at", "locked_until",
}  # fmt: skip

MOMENT = timedelta(milliseconds=1)


def give(shop: Shop, template_id: str, user: str, count: int = 1, first: int = 1) -> list[str]:
    """So many new coupons of the user, the newest first; their numbers."""
    claims = [claim_of(template_id, user, f"r{number}") for number in range(first, first + count)]
    results = shop.front.claim_many(claims).ok()["results"]
    shop.settle(template_id)
    return [str(result["claim_id"]) for result in reversed(results)]


def numbers(items: list[dict[str, Any]]) -> list[str]:
    """The numbers of coupons."""
    return [coupon["coupon_no"] for coupon in items]


def pages(front: Caller, user: str, **query: Any) -> list[list[str]]:
    """Page after page to the end."""
    seen: list[list[str]] = []
    while True:
        page = front.wallet(user, **query).ok()
        seen.append(numbers(page["items"]))
        if page["next_cursor"] is None:
            return seen
        query["cursor"] = page["next_cursor"]


def every(front: Caller, user: str, **query: Any) -> list[str]:
    """The coupons of all pages."""
    return [coupon_no for page in pages(front, user, **query) for coupon_no in page]


def test_a_coupon_tells_what_it_is_worth(shop: Shop) -> None:
    """Money in minor units with its currency, instants in UTC, numbers as text."""
    template_id = shop.desk.open(name="双十一 100-20", per_user_limit=2)
    (coupon_no,) = give(shop, template_id, "ann")

    coupon = shop.front.wallet("ann").ok()["items"][0]

    assert set(coupon) == FIELDS
    said = {
        "coupon_no": coupon_no, "template_id": template_id, "template_name": "双十一 100-20", "user_id": "ann",
        "status": "unused", "type": "amount_off", "amount": 2_000, "max_discount": None, "currency": "CNY",
        "threshold": 10_000, "source": "claim", "order_no": None, "locked_until": None,
    }  # fmt: skip
    assert said == {name: coupon[name] for name in said}
    assert all(coupon[name].endswith("Z") for name in ("valid_from", "valid_to", "issued_at"))
    valid_from, valid_to = (datetime.fromisoformat(coupon[name]) for name in ("valid_from", "valid_to"))
    assert timedelta(days=7) == valid_to - valid_from


def test_a_percentage_is_told_in_basis_points(shop: Shop) -> None:
    """With its cap, and without an amount."""
    template_id = shop.desk.open(type="percent_off", amount=None, percent_off=1_500, max_discount=5_000)
    give(shop, template_id, "ann")

    coupon = shop.front.wallet("ann").ok()["items"][0]

    assert set(coupon) == FIELDS - {"amount"} | {"percent_off"}
    assert (1_500, 5_000) == (coupon["percent_off"], coupon["max_discount"])


def test_pages_go_to_the_end_without_a_gap(shop: Shop) -> None:
    """Newest first, each coupon once, also when the last page is just full, and while new ones come."""
    template_id = shop.desk.open(total_quantity=1_000)
    given = give(shop, template_id, "ann", 120)
    give(shop, template_id, "bob", 3)

    for limit in (7, 40, 50, 120, 200):
        seen = pages(shop.front, "ann", limit=limit)
        assert given == [coupon_no for page in seen for coupon_no in page]
        assert all(len(page) == limit for page in seen[:-1])
    first = shop.front.wallet("ann", limit=50).ok()
    give(shop, template_id, "ann", first=500)

    assert given == numbers(first["items"]) + every(shop.front, "ann", limit=50, cursor=first["next_cursor"])


def test_pages_of_a_status_and_of_those_that_end_soon(shop: Shop) -> None:
    """Each filter alone and both at once, page after page; the end of a validity is exclusive."""
    soon = shop.desk.open(total_quantity=100, validity={"mode": "relative", "days": 1})
    late = shop.desk.open(total_quantity=100, validity={"mode": "relative", "days": 30})
    ends_soon, ends_late = give(shop, soon, "ann", 5), give(shop, late, "ann", 5)
    _move(shop, ends_soon[0], "revoked")
    ends = shop.front.coupon("ann", ends_soon[4]).ok()["valid_to"]
    later = rfc3339(datetime.fromisoformat(ends) + timedelta(days=2))

    unused = sorted([*ends_late, *ends_soon[1:]], key=int, reverse=True)
    assert [unused[:3], unused[3:6], unused[6:]] == pages(shop.front, "ann", status="unused", limit=3)
    assert [ends_soon[:1]] == pages(shop.front, "ann", status="revoked")
    assert ends_soon == every(shop.front, "ann", expiring_before=later, limit=2)
    assert ends_soon[1:] == every(shop.front, "ann", expiring_before=later, status="unused", limit=2)
    assert ends_soon[4] not in every(shop.front, "ann", expiring_before=ends)
    assert [[]] == pages(shop.front, "ann", status="redeemed")


def _move(shop: Shop, coupon_no: str, status: str) -> None:
    with shop.services.engine.begin() as connection:
        connection.execute(
            text("UPDATE coupon SET status = :status WHERE coupon_id = :coupon_id"),
            {"status": status, "coupon_id": int(coupon_no)},
        )


def test_a_coupon_past_its_validity_reads_expired_at_once(shop: Shop) -> None:
    """In the page that is kept, in pages by status and alone; to the millisecond, whatever the row still says."""
    template_id = shop.desk.open()
    (coupon_no,) = give(shop, template_id, "ann")
    kept = shop.front.wallet("ann").ok()["items"][0]
    end = datetime.fromisoformat(kept["valid_to"])
    before, after = shop.at(end - MOMENT), shop.at(end)

    for front, status, other in ((before, "unused", "expired"), (after, "expired", "unused")):
        assert [status] == [coupon["status"] for coupon in front.wallet("ann").ok()["items"]]
        assert [status] == [coupon["status"] for coupon in front.wallet("ann", limit=10).ok()["items"]]
        assert [coupon_no] == numbers(front.wallet("ann", status=status).ok()["items"])
        assert [] == front.wallet("ann", status=other).ok()["items"]
        assert status == front.coupon("ann", coupon_no).ok()["status"]
    assert "unused" == kept["status"]


def test_a_coupon_shows_its_history(shop: Shop) -> None:
    """What happened, when, by what and for which request."""
    template_id = shop.desk.open()
    (coupon_no,) = give(shop, template_id, "ann")

    coupon = shop.front.coupon("ann", coupon_no).ok()

    assert set(coupon) == FIELDS | {"history"}
    (step,) = coupon["history"]
    assert step.pop("at").endswith("Z")
    assert {
        "flow_no": 1, "action": "issue", "from_status": None, "to_status": "unused", "order_no": None,
        "operator": "claim", "request_id": "r1",
    } == step  # fmt: skip


def test_another_users_coupon_is_not_found(shop: Shop) -> None:
    """Like one that does not exist, and like what is no number at all."""
    (coupon_no,) = give(shop, shop.desk.open(), "ann")

    theirs = shop.front.coupon("bob", coupon_no).problem(404, "COUPON_NOT_FOUND")

    nobodys = shop.front.coupon("bob", 1).problem(404, "COUPON_NOT_FOUND")
    assert theirs == nobodys
    for odd in ("0", "-1", "007", "x", "9223372036854775808", "9" * 40, "9" * 5_000, "%D9%A3", f"{coupon_no}.0"):
        shop.front.coupon("ann", odd).problem(404, "COUPON_NOT_FOUND")
    assert {"items": [], "next_cursor": None} == shop.front.wallet("bob").ok()
    assert [] == shop.front.wallet("Ann").ok()["items"]


def test_a_kept_page_is_forgotten_when_a_coupon_comes(shop: Shop) -> None:
    """The second reading is served without the database; after the next claim it shows the new coupon."""
    template_id = shop.desk.open()
    first = give(shop, template_id, "ann")
    read = shop.front.wallet("ann").ok()
    with shop.services.engine.begin() as connection:
        connection.execute(text("UPDATE coupon_template SET name = 'renamed behind its back'"))
    assert read == shop.front.wallet("ann").ok()

    second = give(shop, template_id, "ann", first=2)

    assert [*second, *first] == numbers(shop.front.wallet("ann").ok()["items"])
    assert [*second, *first] == numbers(shop.front.wallet("ann", limit=50).ok()["items"])


BAD_QUERIES = [
    *(f"limit={value}" for value in ("0", "201", "-1", "x", "1.5", "", "9" * 5_000)),
    *(f"cursor={value}" for value in ("x", "-1", "", "12%0A", "9" * 20, "%D9%A3")),
    *(f"status={value}" for value in ("new", "UNUSED", "", "unused,locked")),
    *(f"expiring_before={value}" for value in ("2026-11-11T00:00:00", "2026-11-11", "1794326400", "now", "")),
    *(f"expiring_before={value}" for value in ("2026-02-30T00:00:00Z", "9999-12-31T23:59:59-14:00")),
    *("colour=red", "user_id=bob"),
]


def test_a_query_that_cannot_be_meant_is_refused(shop: Shop) -> None:
    """By its field."""
    refused = {query: shop.front.ask("GET", f"/v1/users/ann/coupons?{query}").bad_fields() for query in BAD_QUERIES}

    assert {query: [query.partition("=")[0]] for query in BAD_QUERIES} == refused


def test_a_user_there_cannot_be_is_refused(shop: Shop) -> None:
    """In the address of a wallet, of a coupon and in the query of the claim centre."""
    for user in ("a%20b", "%20", "u" * 65, "%C2%A0", "a%0Ab", "a%7F", "%E2%80%8B", "%F0%9F%98%80" * 65):
        for path in (f"/v1/users/{user}/coupons", f"/v1/users/{user}/coupons/1", f"/v1/claim-center?user_id={user}"):
            assert ["user_id"] == shop.front.ask("GET", path).bad_fields()


def test_wallets_are_for_storefronts_and_for_reading(shop: Shop) -> None:
    """Nobody else, and nothing but GET; a coupon is given by an operator."""
    nobody, others = shop.caller(), shop.caller("admin", "orders", "ops")
    for path in ("/v1/users/ann/coupons", "/v1/users/ann/coupons/1", "/v1/claim-center?user_id=ann"):
        nobody.ask("GET", path).problem(401, "UNAUTHENTICATED")
        others.ask("GET", path).problem(403, "FORBIDDEN")
        for method in ("POST", "PUT", "DELETE"):
            is_giving = (method, path) == ("POST", "/v1/users/ann/coupons")
            refused = (403, "FORBIDDEN") if is_giving else (405, "METHOD_NOT_ALLOWED")
            shop.front.ask(method, path, {}).problem(*refused)
