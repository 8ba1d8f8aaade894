"""The claim centre over HTTP: what a user finds, and what he may know of it (API.md, Claims)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from coupon_workers.runtime.clock import rfc3339
from tests.support.http_caller import claim_of
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from tests.support.template import insert_template

FIELDS = {
    "template_id", "name", "type", "currency", "amount", "percent_off", "max_discount", "threshold", "state",
    "claimed", "remaining", "starts_at", "ends_at",
}  # fmt: skip


def states(shop: Shop, user: str, **query: Any) -> dict[str, str]:
    """State by template."""
    return {offer["template_id"]: offer["state"] for offer in shop.front.center(user, **query).ok()["items"]}


def remaining(shop: Shop, template_id: str) -> int | None:
    """What the public learns of the stock."""
    (found,) = (o["remaining"] for o in shop.front.center("eve").ok()["items"] if o["template_id"] == template_id)
    return None if found is None else int(found)


def test_an_offer_tells_what_a_shop_window_shows(shop: Shop) -> None:
    """Worth, window and state of it, and the server's time."""
    start, end = from_now(hours=-1), from_now(hours=5)
    template_id = shop.desk.open(name="双十一", claim_start=start, claim_end=end, total_quantity=70)
    before = datetime.now(UTC)

    answer = shop.front.center("ann").ok()

    (offer,) = answer["items"]
    assert FIELDS == set(offer)
    said = {
        "template_id": template_id, "name": "双十一", "type": "amount_off", "currency": "CNY", "amount": 2_000,
        "percent_off": None, "max_discount": None, "threshold": 10_000, "state": "claimable", "claimed": 0,
        "remaining": 70, "starts_at": start, "ends_at": end,
    }  # fmt: skip
    assert said == offer
    assert before <= datetime.fromisoformat(answer["server_time"]) <= datetime.now(UTC)
    assert answer["server_time"].endswith("Z")
    assert answer["next_cursor"] is None


def test_each_user_finds_his_own_state(shop: Shop) -> None:
    """Each of the five there are, before anything is settled and after."""
    desk = shop.desk
    single, double = desk.open(per_user_limit=1), desk.open(per_user_limit=2)
    daily = desk.open(per_user_limit=9, per_user_daily_limit=1)
    free, last = desk.open(), desk.open(total_quantity=1)
    coming = desk.open(claim_start=from_now(hours=1))
    for request in ("r1", "r2"):
        shop.front.claimed(double, "ann", request)
    for template_id in (single, daily, free, last):
        shop.front.claimed(template_id, "ann")
    shop.front.claimed(double, "bob")

    ann = {
        single: "claimed", double: "limit_reached", daily: "limit_reached", free: "claimable", last: "sold_out",
        coming: "not_started",
    }  # fmt: skip
    eve = {single: "claimable", double: "claimable", daily: "claimable", free: "claimable"}
    eve |= {last: "sold_out", coming: "not_started"}
    assert (ann, eve, "claimable") == (states(shop, "ann"), states(shop, "eve"), states(shop, "bob")[double])
    for template_id in (single, double, daily, free, last):
        shop.settle(template_id)
    assert (ann, eve) == (states(shop, "ann"), states(shop, "eve"))
    counts = {offer["template_id"]: offer["claimed"] for offer in shop.front.center("ann").ok()["items"]}
    assert {single: 1, double: 2, daily: 1, free: 1, last: 1, coming: 0} == counts


def test_what_cannot_be_claimed_is_not_offered(shop: Shop) -> None:
    """Drafts, paused ones, those that are over; a pause shows at once, and so does its end."""
    desk = shop.desk
    desk.draft()
    desk.open(claim_start=from_now(days=-2), claim_end=from_now(hours=-1))
    offline, archived, paused, shown = desk.open(), desk.draft(), desk.open(), desk.open()
    desk.act(offline, "offline").ok()
    desk.admin.ask("DELETE", f"/v1/templates/{archived}").ok()

    assert {paused, shown} == set(states(shop, "ann"))
    desk.act(paused, "pause").ok()
    assert {shown} == set(states(shop, "ann"))
    desk.act(paused, "resume").ok()
    assert {paused, shown} == set(states(shop, "ann"))


def test_a_channel_sees_what_it_may_claim(shop: Shop) -> None:
    """And what is for every channel; whoever names none sees all."""
    app, both, every = (shop.desk.open(channels_claim=names) for names in (["app"], ["app", "h5"], []))

    assert {app, both, every} == set(states(shop, "ann", channel="app"))
    assert {both, every} == set(states(shop, "ann", channel="h5"))
    for channel in ("pos", "app,h5", "APP", "%", "ap"):
        assert {every} == set(states(shop, "ann", channel=channel))
    assert {app, both, every} == set(states(shop, "ann"))


def test_the_public_learns_a_round_number(shop: Shop) -> None:
    """Rounded down to two digits: enough for a bar, too little to watch the sale by. Few are told exactly."""
    expected = {1: 1, 99: 99, 100: 100, 101: 100, 119: 110, 999: 990, 1_000: 1_000, 1_999: 1_900, 123_456: 120_000}
    made = {shop.desk.open(total_quantity=total): rounded for total, rounded in expected.items()}

    seen = {offer["template_id"]: offer["remaining"] for offer in shop.front.center("ann").ok()["items"]}

    assert made == seen


def test_the_number_falls_as_units_are_taken(shop: Shop) -> None:
    """With the claim, not with its settling; it rises with the total and is nothing at the end."""
    template_id = shop.desk.open(total_quantity=101)

    seen = [remaining(shop, template_id)]
    for first, last in ((0, 1), (1, 2), (2, 101)):
        shop.front.claim_many([claim_of(template_id, f"u{number}") for number in range(first, last)]).ok()
        seen.append(remaining(shop, template_id))
    shop.settle(template_id)
    shop.desk.change(template_id, total_quantity=104).ok()

    assert [100, 100, 99, 0] == seen
    assert 3 == remaining(shop, template_id)


def test_a_template_being_made_ready_has_no_number_yet(shop: Shop) -> None:
    """It is not sold out."""
    template_id = str(insert_template(shop.services.engine))

    assert {template_id: "claimable"} == states(shop, "ann")
    assert remaining(shop, template_id) is None


def test_the_clock_moves_offers_along(shop: Shop) -> None:
    """Not started until its first instant, claimable from then on, gone with its last."""
    now = datetime.now(UTC).replace(microsecond=0)
    start, end = now + timedelta(hours=1), now + timedelta(hours=2)
    shop.desk.open(claim_start=rfc3339(start), claim_end=rfc3339(end))
    moment = timedelta(milliseconds=1)

    seen = []
    for instant in (start - moment, start, end - moment, end):
        answer = shop.at(instant).center("ann").ok()
        seen.append([offer["state"] for offer in answer["items"]])
        assert rfc3339(instant) == answer["server_time"]

    assert [["not_started"], ["claimable"], ["claimable"], []] == seen


def test_pages_go_to_the_end(shop: Shop) -> None:
    """Newest first, each template once."""
    made = [shop.desk.open() for _ in range(5)]

    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = shop.front.center("ann", **query).ok()
        seen += [offer["template_id"] for offer in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert list(reversed(made)) == seen


def test_a_query_that_cannot_be_meant_is_refused(shop: Shop) -> None:
    """By its field; the user must be named."""
    bad = [
        ("", "user_id"),
        *((f"user_id={user}", "user_id") for user in ("", "a%20b", "u" * 65, "a%0A", "%C2%85")),
        *((f"user_id=ann&limit={limit}", "limit") for limit in ("0", "201", "x")),
        *((f"user_id=ann&cursor={cursor}", "cursor") for cursor in ("x", "-1", "9" * 20)),
        *((f"user_id=ann&channel={channel}", "channel") for channel in ("", "a%0Ab", "c" * 129)),
        ("user_id=ann&colour=red", "colour"),
    ]

    for query, field in bad:
        assert [field] == shop.front.ask("GET", f"/v1/claim-center?{query}").bad_fields(), query
