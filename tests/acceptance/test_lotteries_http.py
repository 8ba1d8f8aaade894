"""Lotteries over HTTP: an operator makes one, customers draw (API.md, lottery)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coupon_workers.lottery.draw_settlement import drain_draws
from coupon_workers.runtime.clock import rfc3339, utc_now
from tests.support.http_reply import Reply
from tests.support.http_shop import Shop


def lottery_body(prizes: list[dict[str, Any]], **changed: Any) -> dict[str, Any]:
    """A lottery that runs from a minute ago for an hour."""
    now = utc_now()
    return {
        "name": "Double Eleven wheel",
        "start": rfc3339(now - timedelta(minutes=1)),
        "end": rfc3339(now + timedelta(hours=1)),
        "prizes": prizes,
    } | changed


def coupon_of(template_id: str, stock: int = 2, weight: int = 1_000_000) -> dict[str, Any]:
    """A prize."""
    return {"name": "20 off", "weight": weight, "template_id": template_id, "stock": stock}


def made(shop: Shop, prizes: list[dict[str, Any]], **changed: Any) -> str:
    """The id of a new lottery."""
    body = lottery_body(prizes, **changed)
    return str(shop.desk.admin.ask("POST", "/v1/lotteries", body).ok(201)["lottery_id"])


def draw(shop: Shop, lottery_id: str, user: Any = "u-1", request: Any = "r1") -> Reply:
    """A customer draws."""
    return shop.front.ask("POST", f"/v1/lotteries/{lottery_id}/draws", {"user_id": user, "request_id": request})


def told(shop: Shop, lottery_id: str) -> Any:
    """How it stands."""
    return shop.desk.admin.ask("GET", f"/v1/lotteries/{lottery_id}").ok()


def test_an_operator_makes_a_lottery_and_a_customer_wins_a_coupon(shop: Shop) -> None:
    """From the draw to the wallet; the stock and the report tell of each step."""
    template_id = shop.desk.open(total_quantity=10)
    lottery = made(shop, [coupon_of(template_id, 4)])
    waiting = shop.desk.stock(template_id)

    drawn = draw(shop, lottery).ok()
    drain_draws(shop.services, int(lottery))
    again = draw(shop, lottery).ok()
    report = told(shop, lottery)

    assert (10, 4, 6) == tuple(waiting[name] for name in ("total", "reserved", "remaining"))
    assert ("20 off", 1, drawn["draw_id"], "queued", False) == tuple(
        drawn[name] for name in ("prize", "prize_no", "coupon_no", "status", "replayed")
    )
    assert drawn | {"status": "settled", "replayed": True} == again
    [held] = shop.front.ask("GET", "/v1/users/u-1/coupons").ok()["items"]
    assert (drawn["coupon_no"], "lottery", "unused") == (held["coupon_no"], held["source"], held["status"])
    [prize] = report["prizes"]
    assert ("active", 1, 0, 1, 3, 1, 1.0, 1.0) == (
        *(report[name] for name in ("status", "draws", "none")),
        *(prize[name] for name in ("drawn", "left", "issued", "expected_odds", "observed_odds")),
    )
    shop.assert_sound()


def test_weights_sum_to_a_million(shop: Shop) -> None:
    """422 names the sum; nothing is set aside."""
    template_id = shop.desk.open(total_quantity=10)

    reply = shop.desk.admin.ask("POST", "/v1/lotteries", lottery_body([coupon_of(template_id, 4, 999_999)]))

    errors = reply.problem(422, "VALIDATION_FAILED")["errors"]
    assert [{"field": "prizes", "message": "the weights must sum to 1000000, and sum to 999999"}] == errors
    assert 0 == shop.desk.stock(template_id)["reserved"]


def test_a_lottery_that_cannot_be_is_refused_precisely(shop: Shop) -> None:
    """No stock, no such template, a time outside of the template's, or longer than a gate can list the offsets of."""
    template_id = shop.desk.open(total_quantity=10)
    late = rfc3339(utc_now() + timedelta(days=4_000))

    def refused(prize: dict[str, Any], status: int, code: str, **changed: Any) -> Any:
        return shop.desk.admin.ask("POST", "/v1/lotteries", lottery_body([prize], **changed)).problem(status, code)

    short = refused(coupon_of(template_id, 11), 409, "NOT_ENOUGH_STOCK")
    refused(coupon_of("77"), 404, "TEMPLATE_NOT_FOUND")
    outside = refused(coupon_of(template_id), 422, "VALIDATION_FAILED", end=late)
    endless = refused(coupon_of(template_id) | {"template_id": None}, 422, "VALIDATION_FAILED", end=late)

    assert (10, template_id) == (short["available"], short["template_id"])
    assert ["end"] == [error["field"] for error in outside["errors"]]
    assert [{"field": "end", "message": "must not come later than ten years after start"}] == endless["errors"]


def test_a_lottery_is_paused_resumed_and_ended(shop: Shop) -> None:
    """Each stops or opens at once; what is left goes back, and the draws of before go on being answered."""
    template_id = shop.desk.open(total_quantity=10)
    lottery = made(shop, [coupon_of(template_id, 4)])
    first = draw(shop, lottery).ok()

    def move(action: str) -> Any:
        return shop.desk.admin.ask("POST", f"/v1/lotteries/{lottery}/{action}").ok()["status"]

    paused = move("pause")
    draw(shop, lottery, "u-2").problem(409, "PAUSED")
    resumed = move("resume")
    ending = move("end")
    draw(shop, lottery, "u-2").problem(409, "ENDED")
    drain_draws(shop.services, int(lottery))
    ended = move("end")
    replayed = draw(shop, lottery).ok()

    assert ("paused", "active", "ending", "ended") == (paused, resumed, ending, ended)
    assert first["prize"] == replayed["prize"]
    assert (1, 0, 9) == tuple(shop.desk.stock(template_id)[name] for name in ("issued", "reserved", "remaining"))
    shop.desk.admin.ask("POST", f"/v1/lotteries/{lottery}/pause").problem(409, "INVALID_STATUS")
    shop.assert_sound()


def test_draws_are_refused_in_the_words_of_claims(shop: Shop) -> None:
    """Unknown, not started, beyond a limit."""
    thanks = {"name": "Thank you", "weight": 1_000_000, "template_id": None, "stock": 100}
    limited = made(shop, [thanks], per_user_limit=1)
    coming = made(shop, [thanks], start=rfc3339(utc_now() + timedelta(minutes=5)))

    draw(shop, "77").problem(404, "LOTTERY_NOT_FOUND")
    draw(shop, "x").problem(404, "LOTTERY_NOT_FOUND")
    early = draw(shop, coming).problem(409, "NOT_STARTED")
    won = draw(shop, limited).ok()
    draw(shop, limited, request="r2").problem(409, "LIMIT_REACHED")
    draw(shop, limited, "a b").problem(422, "VALIDATION_FAILED")

    assert early["starts_at"] == told(shop, coming)["start"]
    assert ("Thank you", None) == (won["prize"], won["coupon_no"])


def test_draws_are_listed_by_lottery_and_user(shop: Shop) -> None:
    """Newest first, a page at a time."""
    thanks = {"name": "Thank you", "weight": 1_000_000, "stock": 100}
    lottery = made(shop, [thanks])
    drawn = [draw(shop, lottery, user, request).ok()["draw_id"] for request in ("r1", "r2") for user in ("u-1", "u-2")]
    drain_draws(shop.services, int(lottery))

    page = shop.desk.admin.ask("GET", f"/v1/lotteries/{lottery}/draws?limit=3").ok()
    rest = shop.desk.admin.ask("GET", f"/v1/lotteries/{lottery}/draws?cursor={page['next_cursor']}").ok()
    own = shop.desk.admin.ask("GET", f"/v1/lotteries/{lottery}/draws?user_id=u-2").ok()
    lotteries = shop.desk.admin.ask("GET", "/v1/lotteries").ok()

    assert drawn[::-1] == [each["draw_id"] for each in page["items"] + rest["items"]]
    assert drawn[1::2][::-1] == [each["draw_id"] for each in own["items"]]
    assert [lottery] == [each["lottery_id"] for each in lotteries["items"]]


def test_a_lottery_sent_again_is_made_once(shop: Shop) -> None:
    """Under its Idempotency-Key."""
    template_id = shop.desk.open(total_quantity=10)
    body, header = lottery_body([coupon_of(template_id, 4)]), {"Idempotency_Key": "wheel-1"}

    first = shop.desk.admin.ask("POST", "/v1/lotteries", body, **header).ok(201)
    again = shop.desk.admin.ask("POST", "/v1/lotteries", body, **header).ok(201)

    assert first == again
    assert 4 == shop.desk.stock(template_id)["reserved"]
