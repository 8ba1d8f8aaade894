"""Up to 500 claims in one request: each answered as it would be alone, in their order (API.md, Claims)."""

from __future__ import annotations

from typing import Any

from coupon_workers.runtime.services import Services
from tests.support.http_caller import claim_of
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop


def codes(results: list[dict[str, Any]]) -> list[tuple[int, str | None]]:
    """Status and code of each."""
    return [(result["status"], result.get("code")) for result in results]


def test_every_answer_stands_where_its_claim_does(shop: Shop) -> None:
    """Accepted, refused for each reason there is, and accepted again."""
    desk = shop.desk
    one, paused, limited = desk.open(total_quantity=1), desk.open(), desk.open(per_user_limit=1)
    daily = desk.open(per_user_limit=2, per_user_daily_limit=1)
    start = from_now(hours=2)
    coming, ended = desk.open(claim_start=start), desk.open(claim_start=from_now(days=-1), claim_end=from_now(hours=-1))
    listed = desk.open(channels_claim=["app"])
    desk.act(paused, "pause").ok()

    results = shop.front.claim_many(
        [
            claim_of(one, "ann"),
            claim_of(one, "bob"),
            claim_of(paused, "ann"),
            claim_of(limited, "ann"),
            claim_of(limited, "ann", "r2"),
            claim_of(daily, "ann"),
            claim_of(daily, "ann", "r2"),
            claim_of(coming, "ann"),
            claim_of(ended, "ann"),
            claim_of(listed, "ann", channel="h5"),
            claim_of("1", "ann"),
            claim_of(listed, "ann", channel="app"),
        ]
    ).ok()["results"]

    assert [
        (202, None),
        (409, "SOLD_OUT"),
        (409, "PAUSED"),
        (202, None),
        (409, "LIMIT_REACHED"),
        (202, None),
        (409, "DAILY_LIMIT_REACHED"),
        (409, "NOT_STARTED"),
        (409, "ENDED"),
        (403, "NOT_ELIGIBLE"),
        (404, "TEMPLATE_NOT_FOUND"),
        (202, None),
    ] == codes(results)
    assert start == results[7]["starts_at"]


def test_one_request_twice_in_a_batch_is_one_claim(shop: Shop) -> None:
    """The first takes a unit, the others are told of it; other users with the same words have their own."""
    template_id = shop.desk.open()
    claims = [claim_of(template_id, user) for user in ("ann", "bob", "ann", "ann")]

    results = shop.front.claim_many(claims).ok()["results"]
    shop.settle(template_id)
    again = shop.front.claim_many(claims).ok()["results"]

    assert [202, 202, 200, 200] == [result["status"] for result in results]
    numbers = [result["claim_id"] for result in results]
    assert numbers == [numbers[0], numbers[1], numbers[0], numbers[0]] and numbers[0] != numbers[1]
    assert [False, False, True, True] == [result["replayed"] for result in results]
    assert ["queued"] * 4 == [result["claim_status"] for result in results]
    assert [(200, number, "issued", True) for number in numbers] == [
        (result["status"], result["claim_id"], result["claim_status"], result["replayed"]) for result in again
    ]
    assert (2, 8) == tuple(shop.desk.stock(template_id)[name] for name in ("issued", "remaining"))
    shop.assert_sound()


def test_the_stock_ends_within_a_batch(shop: Shop) -> None:
    """Five hundred claims are taken at once; the first come are served, and all of them are issued."""
    template_id = shop.desk.open(total_quantity=300)

    results = shop.front.claim_many([claim_of(template_id, f"u{number}") for number in range(500)]).ok()["results"]
    settled = shop.settle(template_id)

    assert [(202, None)] * 300 + [(409, "SOLD_OUT")] * 200 == codes(results)
    assert 300 == settled == shop.desk.stock(template_id)["issued"]
    assert 300 == len({result["claim_id"] for result in results[:300]})
    shop.assert_sound()


def test_a_batch_of_none_or_too_many_is_refused(shop: Shop) -> None:
    """And of what is no list; nothing is taken."""
    template_id = shop.desk.open(total_quantity=1_000)
    before = shop.holdings()

    none_or_too_many: list[Any] = [[], [claim_of(template_id, f"u{number}") for number in range(501)]]
    for claims in [*none_or_too_many, None, {}, "x", 7, True]:
        assert ["claims"] == shop.front.claim_many(claims).bad_fields()
    nothing = shop.front.ask("POST", "/v1/claims/batch", {})
    more = shop.front.ask("POST", "/v1/claims/batch", {"claims": [claim_of(template_id, "ann")], "colour": "red"})
    bare = shop.front.ask("POST", "/v1/claims/batch", [claim_of(template_id, "ann")])

    assert (["claims"], ["colour"], [""]) == (nothing.bad_fields(), more.bad_fields(), bare.bad_fields())
    assert before == shop.holdings()


def test_bad_claims_are_all_named_and_nothing_is_taken(shop: Shop) -> None:
    """By their places; the good ones between them are not claimed either."""
    template_id = shop.desk.open()
    before = shop.holdings()

    reply = shop.front.claim_many(
        [
            claim_of(template_id, "ann"),
            claim_of(template_id, "a b"),
            None,
            claim_of(template_id, "bob"),
            [],
            {},
            claim_of("x", "eve", "", colour="red"),
        ]
    )

    fields = ["claims.1.user_id", "claims.2", "claims.4"]
    fields += [f"claims.5.{name}" for name in ("request_id", "template_id", "user_id")]
    fields += [f"claims.6.{name}" for name in ("colour", "request_id", "template_id")]
    assert fields == reply.bad_fields()
    assert before == shop.holdings()


def test_a_claim_too_often_is_refused_within_its_batch(services: Services) -> None:
    """With the wait; the claims of others around it are accepted."""
    shop = Shop(services, claim_rate=2)
    template_id = shop.desk.open()

    users = [("ann", "r1"), ("ann", "r2"), ("ann", "r3"), ("bob", "r1")]
    results = shop.front.claim_many([claim_of(template_id, *asked) for asked in users]).ok()["results"]

    assert [(202, None), (202, None), (429, "RATE_LIMITED"), (202, None)] == codes(results)
    assert 1 <= results[2]["retry_after_ms"] <= 1_000


def test_a_batch_over_many_templates_rings_for_each(shop: Shop) -> None:
    """All its claims are settled without anybody asking again."""
    template_ids = [shop.desk.open() for _ in range(3)]
    claims = [claim_of(template_id, f"u{number}") for number in range(4) for template_id in template_ids]

    results = shop.front.claim_many(claims).ok()["results"]
    rung = [task.args[0] for task in shop.services.post.sent]  # type: ignore[attr-defined]  # the tests' post box

    assert sorted(map(int, template_ids)) == sorted(rung)
    for template_id in template_ids:
        assert 4 == shop.settle(template_id)
    ends = {shop.front.read_claim(result["claim_id"]).ok()["status"] for result in results}
    assert {"issued"} == ends
