"""The shop's wheel without a browser: the server draws, once for a form, and says what became of it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from tests.support.lottery import Fair, coupon_prize, open_lottery, thanks


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop that serves its storefront."""
    return Shop(services, claim_rate=0, shop=True)


def _fair(shop: Shop, stock: int = 5, **changed: Any) -> Fair:
    template_id = int(shop.desk.open(total_quantity=30, claim_start=from_now(hours=-1)))
    return open_lottery(shop.services, [coupon_prize(template_id, stock)], **changed)


class _Ann:
    """A visitor with a name."""

    def __init__(self, shop: Shop, name: str = "ann") -> None:
        self.client: FlaskClient = shop.app.test_client()
        self.client.post("/shop/welcome", data={"name": name, "form_token": self._hidden("/welcome")})
        self.token = self._hidden()

    def _hidden(self, path: str = "", name: str = "form_token") -> str:
        found = re.search(rf'name="{name}" value="([^"]+)"', self.client.get(f"/shop{path}").text)
        assert found is not None
        return found[1]

    def turn(self, fair: Fair | str, request_id: str = "r1", path: str = "/data/draws") -> Any:
        """The answer to a turn."""
        lottery_id = fair if isinstance(fair, str) else str(fair.lottery_id)
        fields = {"form_token": self.token, "lottery_id": lottery_id, "request_id": request_id}
        return self.client.post(f"/shop{path}", data=fields)


def test_the_same_form_is_the_same_draw_until_its_coupon_is_there(shop: Shop) -> None:
    """On its way, then in the wallet; the stock is asked once."""
    fair, ann = _fair(shop), _Ann(shop)

    first, again = ann.turn(fair).json, ann.turn(fair).json
    fair.drain()
    settled = ann.turn(fair).json

    assert ("You have won: 20 off. The coupon is on its way.", True, 0) == _told(first) == _told(again)
    assert ("You have won: 20 off. The coupon is in your wallet.", False, 0) == _told(settled)
    assert 3 == len({answer["next"] for answer in (first, again, settled)})
    assert ([4], {"ann r1": (1, None)}) == (fair.stock, fair.draws())
    assert 'class="coupon unused"' in ann.client.get("/shop/wallet").text


def test_without_a_script_the_page_itself_tells(shop: Shop) -> None:
    """The form then carries the same draw, to look again; afterwards another."""
    fair, ann = _fair(shop), _Ann(shop)

    waits = ann.turn(fair, path="/draws").text
    fair.drain()
    told = ann.turn(fair, path="/draws").text

    assert "on its way" in waits and 'name="request_id" value="r1"' in waits and "Look again" in waits
    assert "is in your wallet" in told and 'name="request_id" value="r1"' not in told
    assert {"ann": 1} == fair.coupons()


def test_nothing_stops_at_the_last_part(shop: Shop) -> None:
    """A prize that is used up; and one that is no coupon is told by its name."""
    empty, friendly, ann = _fair(shop, stock=1), open_lottery(shop.services, [thanks()]), _Ann(shop)
    ann.turn(empty)

    assert ("Nothing this time.", False, 1) == _told(ann.turn(empty, "r2").json)
    assert ("You have drawn: Thank you", False, 0) == _told(ann.turn(friendly).json)


def test_each_refusal_is_told_in_words_and_turns_nothing(shop: Shop) -> None:
    """Limits, a wheel that stands still, one that is to come, one that is over, none at all."""
    once, daily = _fair(shop, per_user_limit=1), _fair(shop, per_user_daily_limit=1)
    paused, over = _fair(shop), _fair(shop)
    later = open_lottery(shop.services, [thanks()], start=utc_now() + timedelta(minutes=5))
    ann = _Ann(shop)
    paused.pause()
    shop.desk.admin.ask("POST", f"/v1/lotteries/{over.lottery_id}/end").ok()
    ann.turn(once)
    ann.turn(daily)

    told = {
        "You have drawn as often as allowed.": once,
        "You have drawn as often as allowed today.": daily,
        "The wheel stands still for now.": paused,
        "The wheel has ended.": over,
        "The wheel has not started yet.": later,
        "There is no such wheel.": "77",
    }
    for text, fair in told.items():
        assert (text, False, None) == _told(ann.turn(fair, "r2").json)
    assert [1, 1] == [once.queued, daily.queued]


def test_a_wheel_that_is_made_ready_says_so(shop: Shop) -> None:
    """Redis has forgotten it; rebuilt, it goes on."""
    fair, ann = _fair(shop), _Ann(shop)
    shop.services.redis.flushall()

    assert "made ready" in ann.turn(fair).json["text"]
    fair.preheat()
    assert "You have won" in ann.turn(fair).json["text"]


def test_the_draws_that_are_left_are_told(shop: Shop) -> None:
    """Before and after each draw; of two limits the nearer one; nothing without a limit, or without Redis."""
    both, daily = _fair(shop, per_user_limit=3, per_user_daily_limit=2), _fair(shop, per_user_daily_limit=1)
    free, ann = _fair(shop), _Ann(shop)

    before = ann.client.get("/shop").text
    told = [ann.turn(both, request_id).json["left"] for request_id in ("r1", "r1", "r2", "r3")]

    assert ["Draws left today: 1", "Draws left today: 2"] == re.findall(r"Draws left[^<]+", before)
    assert ["Draws left today: 1", "Draws left today: 1", "Draws left today: 0", "Draws left today: 0"] == told
    assert ["Draws left today: 0", ""] == [ann.turn(fair).json["left"] for fair in (daily, free)]
    assert "Draws left today: 2" in _Ann(shop, "ben").client.get("/shop").text
    shop.services.redis.flushall()
    assert "Draws left" not in ann.client.get("/shop").text


def test_of_draws_in_all_the_rest_is_told(shop: Shop) -> None:
    """With a number of the reader's language, in his words."""
    fair, ann = _fair(shop, per_user_limit=2_000), _Ann(shop)
    ann.turn(fair)

    assert "Draws left: 1,999" in ann.client.get("/shop").text
    assert "剩余抽奖次数：1,999" in ann.client.get("/shop", headers={"Accept-Language": "zh"}).text


def test_what_no_page_of_ours_sends_is_refused(shop: Shop) -> None:
    """Without a name, without the token, from another site, with an id that is none."""
    fair, ann = _fair(shop), _Ann(shop)
    stranger = shop.app.test_client()
    fields = {"lottery_id": str(fair.lottery_id), "request_id": "r1", "form_token": ann.token}

    assert 303 == stranger.post("/shop/data/draws", data=fields).status_code
    assert 303 == stranger.get("/shop/wallet").status_code
    assert 403 == ann.client.post("/shop/data/draws", data=fields | {"form_token": "guessed"}).status_code
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert 403 == ann.client.post("/shop/data/draws", data=fields, headers=foreign).status_code
    for request_id in ("", "a b", "a\tb", "<b>", "x" * 65, "é"):
        assert 422 == ann.turn(fair, request_id).status_code, request_id
    assert 404 == ann.turn("not-a-number").status_code
    assert [5] == fair.stock


def test_only_wheels_that_run_or_will_are_shown(shop: Shop) -> None:
    """Three of them; what is over has gone, and the odds are told."""
    ended, ann = _fair(shop, name="Over"), _Ann(shop)
    shop.desk.admin.ask("POST", f"/v1/lotteries/{ended.lottery_id}/end").ok()
    for number in range(4):
        open_lottery(shop.services, [thanks(999_999), replace(thanks(1), name="A bicycle")], name=f"Wheel {number}")

    shown = ann.client.get("/shop").text

    assert [f"Wheel {number}" for number in (3, 2, 1)] == re.findall(r">(Wheel \d)</h2>", shown)
    assert "Over" not in shown
    assert "nothing" in shown and "where a prize is all won" in shown
    assert "Thank you <b>99.9999%</b>" in shown and "A bicycle <b>0.0001%</b>" in shown


def test_the_odds_and_that_a_prize_is_gone_are_told_apart(shop: Shop) -> None:
    """Or "1% all won" would be read as one thing."""
    ann = _Ann(shop)
    fair = _fair(shop, stock=1)

    ann.turn(fair)
    fair.drain()

    assert re.search(r"%</b> · <span[^>]*>all won<", ann.client.get("/shop").text)


def _told(answer: Any) -> tuple[str, bool, int | None]:
    return answer["text"], answer["waits"], answer["stop"]
