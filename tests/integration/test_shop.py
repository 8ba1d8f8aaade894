"""The demo shop without a browser: who may enter, and that nothing is done twice or for somebody else."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from flask.testing import FlaskClient
from pydantic import SecretStr

from coupon_workers.claiming.live_tally import tell_live
from coupon_workers.claiming.live_view import LATE_S, last_whole_second, read_live
from coupon_workers.orders.unlock import unlock_coupon
from coupon_workers.runtime.metrics import take_claims
from coupon_workers.runtime.services import Services
from tests.support.http_shop import Shop
from web.console.blueprint import POLICY


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop that serves its storefront."""
    return Shop(services, claim_rate=0, shop=True)


def _visitor(shop: Shop, name: str = "ann") -> FlaskClient:
    client = shop.app.test_client()
    answer = client.post("/shop/welcome", data={"name": name, "form_token": _hidden(client, "form_token", "/welcome")})
    assert 303 == answer.status_code
    return client


def _hidden(client: FlaskClient, name: str, path: str = "") -> str:
    found = re.search(rf'name="{name}" value="([^"]+)"', client.get(f"/shop{path}").text)
    assert found is not None
    return found[1]


def test_it_is_not_there_unless_a_setting_says_so(services: Services) -> None:
    """Not even its door."""
    assert 404 == Shop(services).app.test_client().get("/shop/welcome").status_code


def test_whoever_has_no_name_is_asked_for_one(shop: Shop) -> None:
    """On every page; each answer carries the policy."""
    client = shop.app.test_client()

    for path in ("", "/cart?tea=1", "/orders/o-1", "/data/claims/1"):
        assert "/shop/welcome" == client.get(f"/shop{path}").location, path
    assert POLICY == client.get("/shop/welcome").headers["Content-Security-Policy"]
    assert 422 == _post(client, "/welcome", name="a b")


def test_a_claim_here_is_told_to_the_live_view(shop: Shop) -> None:
    """Accepted, or refused when nothing is left."""
    take_claims()
    template_id = shop.desk.open(total_quantity=1)

    for name in ("ann", "bob"):
        _post(_visitor(shop, name), "/claims", template_id=template_id, request_id=f"{name}1")
    tell_live(shop.services)

    later = replace(shop.services, clock=lambda: shop.services.clock() + timedelta(seconds=LATE_S + 1))
    [told] = read_live(later, [int(template_id)], last_whole_second(later) - 60)
    assert Counter(ACCEPTED=1, SOLD_OUT=1) == sum(map(Counter, told.seconds.values()), Counter())


def test_times_are_the_visitors_or_the_templates(shop: Shop) -> None:
    """A browser tells its zone; without a script the template's own is named. The countdown goes by the instant."""
    end = "2035-06-30T16:30:00Z"
    shop.desk.open(name="Midsummer", timezone="Asia/Tokyo", claim_end=end)
    client = _visitor(shop)

    of_template = client.get("/shop").text
    client.set_cookie("cw_zone", "Europe/Paris", path="/shop")
    of_visitor = client.get("/shop").text
    client.set_cookie("cw_zone", "Moon/Crater", path="/shop")
    of_nowhere = client.get("/shop").text

    assert "1 Jul 2035, 01:30:00" in of_template and "Asia/Tokyo" in of_template
    assert "30 Jun 2035, 18:30:00" in of_visitor and "Asia/Tokyo" not in of_visitor
    assert "Asia/Tokyo" in of_nowhere
    in_chinese = client.get("/shop", headers={"Accept-Language": "zh"}).text
    assert 'data-days="# d"' in of_visitor and 'data-days="# 天"' in in_chinese
    assert all('data-until="2035-06-30T16:30:00+00:00"' in page for page in (of_template, of_visitor))


def test_an_end_at_midnight_is_the_end_of_the_day(shop: Shop) -> None:
    """Not the beginning of the next one, in which nothing can be had."""
    shop.desk.open(timezone="Asia/Tokyo", claim_end="2035-06-30T15:00:00Z")

    page = _visitor(shop).get("/shop").text

    assert "30 Jun 2035, 24:00:00" in page
    assert 'data-until="2035-06-30T15:00:00+00:00"' in page


def _post(client: FlaskClient, path: str, page: str = "/welcome", **fields: str) -> int:
    token = _hidden(client, "form_token", page)
    return client.post(f"/shop{path}", data=fields | {"form_token": token}).status_code


def test_a_write_from_elsewhere_is_refused(shop: Shop) -> None:
    """Without the cookie's token, or sent by another site."""
    client = _visitor(shop)
    token = _hidden(client, "form_token")

    assert 403 == client.post("/shop/claims", data={"form_token": "guessed"}).status_code
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert 403 == client.post("/shop/claims", data={"form_token": token}, headers=foreign).status_code


def test_a_form_that_is_sent_twice_claims_once(shop: Shop) -> None:
    """Its request's id is in it."""
    template_id = shop.desk.open(per_user_limit=None)
    client = _visitor(shop)
    request_id = _hidden(client, "request_id")

    for _ in range(2):
        assert 303 == _post(client, "/claims", template_id=template_id, request_id=request_id)
    shop.settle(template_id)

    assert 1 == len(shop.front.wallet("ann").ok()["items"])


def test_a_name_that_is_refused_stays_in_its_field(shop: Shop) -> None:
    """And the page says which letters a name may have."""
    client = shop.app.test_client()
    token = _hidden(client, "form_token", "/welcome")

    answer = client.post("/shop/welcome", data={"name": "小明", "form_token": token})

    assert 422 == answer.status_code
    assert 'value="小明"' in answer.text and "A–Z and digits 0–9" in answer.text


def test_what_was_claimed_is_not_offered_again(shop: Shop) -> None:
    """Its place says so, though units are left."""
    template_id = shop.desk.open(per_user_limit=1)
    ann = _visitor(shop)
    offered = ann.get("/shop").text
    shop.front.claimed(template_id, "ann")

    assert ">Claim<" in offered
    after = ann.get("/shop").text
    assert ">Claim<" not in after and '<span class="badge good">claimed</span>' in after


def test_a_wrong_code_is_told_at_its_field(services: Services) -> None:
    """With what was typed; nothing of the page goes."""
    ann = _visitor(Shop(services, claim_rate=0, shop=True, code_pepper=SecretStr("a-pepper-of-sixteen-bytes")))
    token = _hidden(ann, "form_token")

    answer = ann.post("/shop/codes", data={"form_token": token, "request_id": "r1", "code": "NO-SUCH"})

    assert 404 == answer.status_code
    assert "This code is not valid." in answer.text and 'value="NO-SUCH"' in answer.text and "Goods" in answer.text


@pytest.mark.parametrize("path", ["codes", "claims", "draws", "orders"])
def test_where_a_form_was_sent_to_is_the_shop_when_it_is_opened(shop: Shop, path: str) -> None:
    """A refusal leaves it in the browser's address; whoever has no name is asked for one first."""
    assert (303, "/shop") == ((answer := _visitor(shop).get(f"/shop/{path}")).status_code, answer.location)
    assert "/shop/welcome" == shop.app.test_client().get(f"/shop/{path}").location


def test_an_address_that_is_none_is_a_page(shop: Shop) -> None:
    """Also to whoever has no name."""
    for client in (_visitor(shop), shop.app.test_client()):
        answer = client.get("/shop/nowhere/at/all")

        assert (404, "text/html; charset=utf-8") == (answer.status_code, answer.content_type)
        assert "There is no such page." in answer.text


def test_an_order_is_its_visitors_alone(shop: Shop) -> None:
    """Another visitor neither sees it nor pays it; an unknown code and an empty cart are refused."""
    template_id = shop.desk.open(threshold=0)
    coupon_no = shop.front.claimed(template_id, "ann")
    shop.settle(template_id)
    ann, ben = _visitor(shop), _visitor(shop, "ben")
    order_no = _hidden(ann, "order_no", "/cart?tea=1")

    for _ in range(2):
        assert 303 == _post(ann, "/orders", order_no=order_no, tea="1", coupon_no=coupon_no)

    assert "coupons held" in ann.get(f"/shop/orders/{order_no}").text
    assert 404 == ben.get(f"/shop/orders/{order_no}").status_code
    assert 404 == _post(ben, f"/orders/{order_no}/pay")
    assert 422 == _post(ann, "/orders", order_no="shop-2", coupon_no=coupon_no)
    assert 303 == _post(ann, f"/orders/{order_no}/cancel")
    assert "unused" == shop.front.coupon("ann", coupon_no).ok()["status"]


def test_a_piece_goes_back_once_however_often_its_button_is_pressed(shop: Shop) -> None:
    """Line by line, each with its amount; what is left goes back whole, and then nothing is left."""
    template_id = shop.desk.open(name="Twenty off", threshold=0, amount=2_000)
    coupon_no = shop.front.claimed(template_id, "ann")
    shop.settle(template_id)
    ann, ben = _visitor(shop), _visitor(shop, "ben")
    cart = ann.get("/shop/cart?tea=2&lamp=1").text
    order_no = _hidden(ann, "order_no", "/cart?tea=2&lamp=1")
    _post(ann, "/orders", order_no=order_no, tea="2", lamp="1", coupon_no=coupon_no)
    path = f"/orders/{order_no}"
    held = ann.get(f"/shop{path}").text
    _post(ann, f"{path}/pay")
    paid = ann.get(f"/shop{path}").text

    for _ in range(2):
        assert 303 == _post(ann, f"{path}/refund/one", line_id="tea", piece="1")
    part = ann.get(f"/shop{path}").text
    assert "My orders" in (front := ann.get("/shop").text) and f"/shop{path}" in front
    assert 404 == _post(ben, f"{path}/refund/one", line_id="tea", piece="2")
    for line_id, piece in (("tea", "0"), ("tea", "x"), ("hat", "1"), ("lamp", "")):
        assert 422 == _post(ann, f"{path}/refund/one", line_id=line_id, piece=piece)
    for _ in range(2):
        assert 303 == _post(ann, f"{path}/refund")
    whole = ann.get(f"/shop{path}").text

    assert "Twenty off" in cart and "Twenty off" in held
    assert "To pay" in held and "Send one back" not in held
    assert "Paid<" in paid and "To pay" not in paid and 2 == paid.count("Send one back")
    assert "returned in part" in part and 'name="piece" value="2"' in part and "Send the rest back" in part
    assert ["tea 1", "tea 1, lamp 1"] == _refunds(shop, order_no)
    assert "Paid back altogether" in whole and "CN¥245.00" in whole and "Send" not in whole
    assert 409 == _post(ann, f"{path}/refund/one", line_id="tea", piece="2")
    shop.assert_sound()


def _listed(client: FlaskClient) -> list[tuple[str, str]]:
    """The orders of the front page: coupons and state."""
    found = re.search(r"<h2>My orders</h2>\s*<ul>(.*?)</ul>", client.get("/shop").text, re.DOTALL)
    return re.findall(r"<a[^>]*>(.*?)</a> <span[^>]*>(.*?)</span>", found[1]) if found else []


def test_orders_are_listed_as_their_own_pages_tell_them(shop: Shop) -> None:
    """Held, paid, returned in part and whole; the coupon's name stays when it has come back."""
    template_id = shop.desk.open(name="Twenty off", threshold=0, amount=2_000)
    coupon_no = shop.front.claimed(template_id, "ann")
    shop.settle(template_id)
    ann = _visitor(shop)
    order_no = _hidden(ann, "order_no", "/cart?tea=2")
    none = _listed(ann)
    listed = []

    _post(ann, "/orders", order_no=order_no, tea="2", coupon_no=coupon_no)
    listed += _listed(ann)
    for act, line in (("pay", {}), ("refund/one", {"line_id": "tea", "piece": "1"}), ("refund", {})):
        assert 303 == _post(ann, f"/orders/{order_no}/{act}", **line)
        listed += _listed(ann)
        assert f">{listed[-1][1]}</span>" in ann.get(f"/shop/orders/{order_no}").text

    assert [] == none == _listed(_visitor(shop, "ben"))
    assert [("Twenty off", state) for state in ("coupons held", "paid", "returned in part", "returned")] == listed


def test_an_order_that_an_operator_cancelled_stays_in_the_list(shop: Shop) -> None:
    """The newest first; its coupon may be on another order since."""
    template_id = shop.desk.open(name="Twenty off", threshold=0, amount=2_000)
    coupon_no = shop.front.claimed(template_id, "ann")
    shop.settle(template_id)
    ann = _visitor(shop)
    first, second = (_hidden(ann, "order_no", "/cart?tea=1") for _ in range(2))

    _post(ann, "/orders", order_no=first, tea="1", coupon_no=coupon_no)
    unlock_coupon(shop.services, "ann", int(coupon_no), "a call", "key:1", force=True)
    freed = _listed(ann)
    _post(ann, "/orders", order_no=second, tea="1", coupon_no=coupon_no)

    assert [("Twenty off", "cancelled")] == freed
    assert [("Twenty off", "coupons held"), ("Twenty off", "cancelled")] == _listed(ann)


def _refunds(shop: Shop, order_no: str) -> list[str]:
    order = shop.caller("orders").ask("GET", f"/v1/orders/{order_no}?user_id=ann").ok()
    return [
        ", ".join(f"{line['line_id']} {line['quantity']}" for line in refund["lines"]) for refund in order["refunds"]
    ]


def test_what_is_set_aside_is_not_sold_out(shop: Shop) -> None:
    """Codes have every unit; it stands last, what can be claimed first. Once somebody has claimed, it is sold out."""
    gone = shop.desk.open(name="Gone", total_quantity=1)
    shop.desk.open(name="Free", total_quantity=5)
    aside = shop.desk.open(name="Aside", total_quantity=3)
    shop.front.claimed(gone, "ben")
    shop.settle(gone)
    shop.desk.admin.ask("POST", "/v1/code-batches", {"template_id": aside, "quantity": 3}).ok(202)

    english = _visitor(shop).get("/shop").text
    chinese = _visitor(shop).get("/shop", headers={"Accept-Language": "zh"}).text

    assert ["Free", "Aside", "Gone"] == re.findall(r"<h3>(\w+)</h3>", english)
    assert 1 == english.count("by code, prize or gift only") == english.count(">sold out<")
    assert "0 left" not in english
    assert 1 == chinese.count("仅限兑换码、抽奖或赠送") == chinese.count(">已领完<")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("/shop/", "/shop"), ("/shop/wallet/", "/shop/wallet"), ("/shop/?claim=1%2F2", "/shop?claim=1%2F2")],
)
def test_a_slash_at_the_end_leads_to_the_page(shop: Shop, typed: str, meant: str) -> None:
    """As people type it; what is asked comes along, and it never leads away."""
    client = _visitor(shop)

    answer = client.get(typed)

    assert (308, meant) == (answer.status_code, answer.location)
    assert 404 == client.get("/shop/nowhere/", follow_redirects=True).status_code
    assert client.get("/shop//example.com/").location is None
