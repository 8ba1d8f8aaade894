"""Getting into the console by a key, staying in, and being out again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from coupon_workers.access.api_key import create_key, revoke_key
from coupon_workers.access.console_session import IDLE_MS, LONGEST_MS, find_session, open_session
from coupon_workers.access.login_limit import MOST_TRIES
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop
from web.console.blueprint import POLICY
from web.console.guard import COOKIE, DATA, SHOWN_TO
from web.console.page_table import PAGES

OPEN = {"/console/login", "/console/language", "/console/static/<path:file>"}


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop on empty stores."""
    return Shop(services)


def test_a_key_opens_a_session(shop: Shop) -> None:
    """The cookie is for this browser and this site only, and the key is not in it."""
    key = create_key(shop.services.engine, name="Zoe", scopes=["admin"]).key
    client = shop.app.test_client()

    answer = client.post("/console/login", data={"key": f" {key} ", "next": "/console/approvals"})

    assert (303, "/console/approvals") == (answer.status_code, answer.location)
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/console"} <= set(cookie.split("; "))
    assert key.partition("_")[2] not in cookie
    assert 200 == client.get("/console/approvals").status_code


def test_over_https_the_cookie_stays_there(shop: Shop) -> None:
    """Also where a proxy ends TLS."""
    key = create_key(shop.services.engine, name="Zoe", scopes=["admin"]).key

    answer = shop.app.test_client().post("/console/login", data={"key": key}, headers={"X-Forwarded-Proto": "https"})

    assert "Secure" in answer.headers["Set-Cookie"].split("; ")


@pytest.mark.parametrize(
    ("scopes", "signed"), [(["storefront"], False), (["orders"], False), (["admin"], True)], ids=str
)
def test_a_key_that_is_for_programs_opens_none(shop: Shop, scopes: list[str], signed: bool) -> None:
    """Neither that of a storefront, nor one whose requests are signed."""
    key = create_key(shop.services.engine, name="program", scopes=scopes, signed=signed).key

    answer = shop.app.test_client().post("/console/login", data={"key": key})

    assert 401 == answer.status_code
    assert "Set-Cookie" not in answer.headers


def test_wrong_keys_are_tried_so_often_and_no_more(shop: Shop) -> None:
    """A right one uses nothing up, and is not heard once too many were wrong."""
    key = create_key(shop.services.engine, name="Zoe", scopes=["admin"]).key
    client = shop.app.test_client()

    right = [client.post("/console/login", data={"key": key}).status_code for _ in range(3)]
    wrong = [client.post("/console/login", data={"key": f"cw_{n}"}).status_code for n in range(MOST_TRIES)]

    assert [303] * 3 == right
    assert [401] * MOST_TRIES == wrong
    assert 429 == client.post("/console/login", data={"key": key}).status_code


def test_nobody_sees_a_page_without_a_session(shop: Shop) -> None:
    """Every address of the console leads to the form, or is one of the few that have to be open."""
    client = shop.app.test_client()

    for rule in shop.app.url_map.iter_rules():
        if rule.rule.startswith("/console") and rule.rule not in OPEN:
            for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}:
                answer = client.open(rule.rule.replace("<", "").replace(">", ""), method=method)
                if rule.rule.startswith(DATA):
                    assert 401 == answer.status_code, rule
                else:
                    assert answer.status_code == 303 and answer.location.startswith("/console/login"), rule


def test_pages_are_shown_by_scope(shop: Shop) -> None:
    """In the navigation as when they are asked for: what one key sees, another is refused."""
    visitors = {scope: Visitor(shop, scope) for scope in ("admin", "ops")}

    for rule in shop.app.url_map.iter_rules():
        shown_to = getattr(shop.app.view_functions[rule.endpoint], SHOWN_TO, None)
        for scope, visitor in visitors.items():
            if shown_to and scope not in shown_to and "GET" in (rule.methods or ()):
                path = rule.rule.removeprefix("/console").replace("<", "").replace(">", "")
                assert 403 == visitor.get(path).status_code, rule
    for page in PAGES:
        assert page.scopes == getattr(shop.app.view_functions[f"console.{page.endpoint}"], SHOWN_TO), page


def test_a_session_ends_with_its_key(shop: Shop) -> None:
    """At once, whatever fronts remember of the key."""
    zoe = Visitor(shop, "admin")
    zoe.page("/templates")

    revoke_key(shop.services.engine, zoe.key.record.key_id)

    assert 303 == zoe.get("/templates").status_code


def test_a_session_ends_when_nobody_asks(shop: Shop) -> None:
    """A page that asks by itself keeps nobody in."""
    zoe = Visitor(shop, "admin")
    [name] = shop.services.redis.keys("cw:console:*")
    shop.services.redis.pexpire(name, 60_000)

    zoe.page("/data/live")
    left_ms = shop.services.redis.pttl(name)
    zoe.page("/live")

    assert left_ms <= 60_000
    assert IDLE_MS - 60_000 < shop.services.redis.pttl(name) <= IDLE_MS


def test_a_session_ends_after_a_day_of_work(services: Services) -> None:
    """However busy it was."""
    token = open_session(services, create_key(services.engine, name="Zoe", scopes=["admin"]).record.key_id)
    evening = services.clock() + timedelta(milliseconds=LONGEST_MS)

    assert None is find_session(replace(services, clock=lambda: evening), token)
    assert None is find_session(services, token)


def test_whoever_reads_redis_learns_no_token(services: Services) -> None:
    """Its hash is the name of the key."""
    token = open_session(services, create_key(services.engine, name="Zoe", scopes=["admin"]).record.key_id)

    [name] = services.redis.keys("cw:console:*")

    assert token.encode() not in name + services.redis.get(name)


def test_logging_out_ends_the_session(shop: Shop) -> None:
    """In Redis, not only in this browser."""
    zoe = Visitor(shop, "admin")
    cookie = zoe.client.get_cookie(COOKIE, path="/console")
    assert cookie is not None

    zoe.post("/logout")

    assert None is find_session(shop.services, cookie.value)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Form-Token": "guessed"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_a_write_that_was_not_meant_is_refused(shop: Shop, headers: dict[str, str]) -> None:
    """Without the session's token, or from a page of somebody else; with it the very same is done."""
    zoe = Visitor(shop, "admin")
    foreign = headers.keys() & {"Origin", "Sec-Fetch-Site"}
    fields = {"form_token": zoe.form_token} if foreign else {}

    answer = zoe.client.post("/console/logout", data=fields, headers=headers)

    assert 403 == answer.status_code
    assert 200 == zoe.get("/templates").status_code


@pytest.mark.parametrize(
    "target",
    ["https://elsewhere.example/", "//elsewhere.example", "/console/\\elsewhere", "/v1/templates", "/console.evil"],
)
def test_logging_in_leads_nowhere_else(shop: Shop, target: str) -> None:
    """A link that somebody sent cannot use the form to lead away."""
    key = create_key(shop.services.engine, name="Zoe", scopes=["admin"]).key

    answer = shop.app.test_client().post("/console/login", data={"key": key, "next": target})

    assert "/console/" == answer.location


def test_every_answer_carries_the_policy(shop: Shop) -> None:
    """Pages, files, refusals and what is not there."""
    zoe = Visitor(shop, "admin")

    for path in ("/templates", "/static/console.css", "/login", "/nothing-here", "/templates?cursor=bad"):
        answer = zoe.get(path)
        assert POLICY == answer.headers["Content-Security-Policy"], path
        assert "nosniff" == answer.headers["X-Content-Type-Options"], path


def test_the_language_is_the_browsers_until_one_is_chosen(shop: Shop) -> None:
    """English, where it prefers neither."""
    chinese, french = Visitor(shop, "admin", language="zh-CN,en;q=0.5"), Visitor(shop, "admin", language="fr")

    assert '<html lang="zh-Hans">' in chinese.page("/templates")
    assert '<html lang="en">' in french.page("/templates")
    french.client.post("/console/language", data={"language": "zh"})
    assert '<html lang="zh-Hans">' in french.page("/templates")


def test_without_redis_the_console_says_so_in_its_own_words(services: Services) -> None:
    """As a page; scripts hear it as data. Nobody is let in meanwhile."""
    zoe = Visitor(Shop(services), "admin")
    away = Shop(replace(services, redis=client_without_retries("redis://127.0.0.1:1", 1_000)))
    zoe.client = away.app.test_client()
    zoe.client.set_cookie(COOKIE, "any", path="/console")

    for path in ("/templates", "/login"):
        answer = zoe.get(path)
        assert (503, True) == (answer.status_code, "Redis does not answer" in answer.text)
    assert 503 == zoe.get("/data/live").status_code
    assert zoe.get("/data/live").is_json
    assert 503 == zoe.client.post("/console/login", data={"key": zoe.key.key}).status_code


def test_a_slash_at_the_end_leads_to_the_page(shop: Shop, zoe: Visitor) -> None:
    """Of any page of the console, what is asked comes along; no such page is none with a slash either."""
    typed = {"/templates/": "/console/templates", "/findings/?state=all": "/console/findings?state=all"}

    for path, meant in typed.items():
        answer = zoe.get(path)
        assert (308, meant) == (answer.status_code, answer.location)
    assert 404 == zoe.client.get("/console/nowhere/", follow_redirects=True).status_code
    assert 303 == shop.app.test_client().get("/console/templates/").status_code
