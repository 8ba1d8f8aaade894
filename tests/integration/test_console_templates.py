"""Templates in the console: made, changed, published, stopped; the same rules, refusals and audit rows as over HTTP."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from tests.support.console_visitor import Visitor
from tests.support.http_desk import template_body
from tests.support.http_shop import Shop

FILLED = {
    "name": "Double Eleven",
    "type": "amount_off",
    "currency": "CNY",
    "amount": "19.90",
    "threshold": "100",
    "total_quantity": "1000",
    "per_user_limit": "1",
    "timezone": "Asia/Shanghai",
    "claim_start": "2036-11-11T00:00",
    "claim_end": "2036-11-12T00:00",
    "validity_mode": "relative",
    "validity_days": "7",
    "until_end_of_day": "on",
    "products_in": "p-1, p-2、p-3",
    "channels": "app",
    "priority": "100",
    "notify": "on",
}


def _allotted(zoe: Visitor, path: str = "/templates/new") -> str:
    found = re.search(r'name="allotted" value="([^"]+)"', zoe.page(path))
    assert found is not None
    return found[1]


def _made(zoe: Visitor, **changed: str) -> str:
    """The identity of a new draft."""
    leads = zoe.done("/templates/new", **FILLED | {"allotted": _allotted(zoe)} | changed)
    return leads.rpartition("/")[2].partition("?")[0]


def _template(shop: Shop, template_id: str) -> dict[str, Any]:
    return dict(shop.desk.admin.ask("GET", f"/v1/templates/{template_id}").ok())


def _audited(shop: Shop, template_id: str) -> list[tuple[str, str]]:
    """What the audit log says was done to the template, and by whom."""
    with shop.services.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT action, operator FROM audit_log WHERE subject = :subject ORDER BY audit_id"),
            {"subject": f"template:{template_id}"},
        )
        return [tuple(row) for row in rows]


def test_a_template_is_made_of_what_was_typed(shop: Shop, zoe: Visitor) -> None:
    """Money in major units, times of the template's zone, lists with commas of both languages."""
    made = _template(shop, _made(zoe))

    assert (1_990, 10_000, 1_000) == (made["amount"], made["threshold"], made["total_quantity"])
    assert "2036-11-10T16:00:00Z" == made["claim_start"]
    assert {"mode": "relative", "days": 7, "start_after_days": 0, "until_end_of_day": True} == made["validity"]
    assert ["p-1", "p-2", "p-3"] == made["scope"]["products"]["include"]
    assert ("draft", True, False) == (made["status"], made["notify"], made["transferable"])


def test_a_new_template_can_be_claimed_once_it_is_published(shop: Shop, zoe: Visitor) -> None:
    """From this minute for a week of whole days, by clocks of the reader's zone; of an unknown one by Shanghai's."""
    zoe.client.set_cookie("cw_zone", "Europe/Paris", path="/console")
    page = zoe.page("/templates/new")
    zoe.client.set_cookie("cw_zone", "Moon/Crater", path="/console")
    elsewhere = zoe.page("/templates/new")

    typed = dict(re.findall(r'name="(claim_\w+|timezone)" type="[^"]+" value="([^"]*)"', page))
    start = datetime.fromisoformat(typed["claim_start"]).replace(tzinfo=ZoneInfo("Europe/Paris"))
    assert timedelta(0) <= shop.services.clock() - start < timedelta(minutes=2)
    assert f"{(start.date() + timedelta(days=8)).isoformat()}T00:00" == typed["claim_end"]
    assert "Europe/Paris" == typed["timezone"]
    assert 'value="Asia/Shanghai"' in elsewhere


def test_a_form_that_is_sent_twice_makes_one_template(shop: Shop, zoe: Visitor) -> None:
    """A double press, or a reload of the answer; the log has it once, by the key that was used."""
    fields = FILLED | {"allotted": _allotted(zoe)}

    first, again = (zoe.done("/templates/new", **fields) for _ in range(2))

    template_id = first.rpartition("/")[2].partition("?")[0]
    assert first == again
    assert [("template.create", zoe.key.record.key_id)] == _audited(shop, template_id)


def test_an_identity_that_was_not_given_is_refused(shop: Shop, zoe: Visitor) -> None:
    """Made up, or of another session."""
    for allotted in ("7001.abc", "", _allotted(Visitor(shop, "admin"))):
        assert 403 == zoe.post("/templates/new", **FILLED, allotted=allotted).status_code


def test_every_mistake_is_told_at_its_field_and_nothing_is_lost(zoe: Visitor) -> None:
    """What cannot be read, and what the rules forbid."""
    wrong = {"amount": "19.901", "total_quantity": "many", "claim_end": "2036-11-01T00:00", "name": "Kept <b>"}

    answer = zoe.post("/templates/new", **FILLED | wrong | {"allotted": _allotted(zoe)})

    assert 422 == answer.status_code
    assert 3 == answer.text.count('aria-invalid="true"')
    assert "Write an amount such as 20" in answer.text
    assert "It must come after the beginning of claiming." in answer.text
    assert 'value="Kept &lt;b&gt;"' in answer.text


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "percent_off", "amount": None, "percent_off": 1250, "max_discount": 5_000},
        {"type": "cash", "amount": 500, "threshold": 0},
        {"type": "amount_off", "currency": "JPY", "amount": 500, "threshold": 3_000},
        {
            "type": "random_amount",
            "amount": None,
            "pool": {
                "min": 100,
                "max": 1_000,
                "budget": 4_000,
                "distribution": "tiered",
                "tiers": [{"min": 100, "max": 200, "weight": 3}, {"min": 300, "max": 1_000, "weight": 1}],
            },
        },
        {
            "validity": {"mode": "fixed", "from": "2036-11-11T00:00:00+08:00", "to": "2036-12-01T00:00:00+08:00"},
            "claim_start": "2036-11-11T00:00:00+08:00",
            "claim_end": "2036-11-20T00:00:00+08:00",
            "scope": {"products": {"include": ["a"], "exclude": ["b"]}, "user_tags": ["vip", "新客"]},
            "stacking": {"exclusive": True, "group": "g", "priority": 3},
            "refund": {"return": "never", "threshold": "recheck", "expired": "extend", "grace_days": 2},
            "approval_required": True,
            "per_user_daily_limit": None,
            "transferable": True,
            "notify": False,
        },
        {"claim_start": "2036-11-11T10:00:30+08:00", "claim_end": "2036-11-12T23:59:59.999+08:00"},
    ],
    ids=["percent", "cash", "yen", "tiers", "terms", "seconds"],
)
def test_a_draft_that_is_saved_as_it_is_does_not_change(shop: Shop, zoe: Visitor, fields: dict[str, Any]) -> None:
    """The form can hold whatever a template can be."""
    start = {"claim_start": "2036-11-11T00:00:00+08:00", "claim_end": "2036-11-12T00:00:00+08:00"}
    draft = shop.desk.draft(**start | fields)
    before = _template(shop, draft)

    leads = zoe.done(f"/templates/{draft}/edit", **_form_values(zoe.page(f"/templates/{draft}/edit")))

    assert leads.startswith(f"/console/templates/{draft}")
    assert before == _template(shop, draft)


def test_the_page_shows_every_term_that_was_chosen(shop: Shop, zoe: Visitor) -> None:
    """Those of the last step too, also where they are what most templates have."""
    chosen = shop.desk.draft(
        stacking={"group": "gift", "priority": 3},
        refund={"return": "never", "threshold": "recheck", "expired": "extend", "grace_days": 2},
        channels_claim=["app", "h5"],
        restock_on_revoke=True,
        notify=False,
        approval_required=True,
    )

    facts, usual = (_facts(zoe.page(f"/templates/{number}")) for number in (chosen, shop.desk.draft()))

    terms = {
        "Claimed in these channels": ("app, h5", "all"),
        "Group": ("gift", "none"),
        "Priority": ("3 lower ones are applied first", "100 lower ones are applied first"),
        "Risk policy": ("none", "none"),
        "After a refund": ("it never comes back", "it comes back once all is returned"),
        "Its threshold after a part was returned": ("is checked again", "is kept"),
        "If it has expired by then": ("it is extended by 2 days", "it stays expired"),
        "A revoked one goes back to the stock": ("yes", "no"),
        "Users are told of it": ("no", "yes"),
        "Published by two people": ("yes", "only where its cost asks for it"),
    }
    assert terms == {name: (facts[name], usual[name]) for name in terms}


def _facts(page: str) -> dict[str, str]:
    """What the page tells of the template, by the words beside it."""
    pairs = re.findall(r"<dt>([^<]+)</dt>\s*<dd>(.*?)</dd>", page, re.DOTALL)
    return {name: re.sub(r"<[^>]+>", "", told).strip() for name, told in pairs}


def _form_values(page: str) -> dict[str, str]:
    """What a browser would send of the form as it stands."""
    from html import unescape

    form = page.partition('id="wizard"')[2].partition("</form>")[0]
    values = {}
    for tag in re.findall(r"<input[^>]*>", form, re.DOTALL):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and value and ('type="checkbox"' not in tag or " checked" in tag):
            values[name[1]] = unescape(value[1])
    for name, options in re.findall(r'<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>', form, re.DOTALL):
        values[name] = re.findall(r'value="([^"]*)"[^>]*selected', options)[0]
    return values


def test_a_draft_is_changed_published_paused_and_put_to_an_end(shop: Shop, zoe: Visitor) -> None:
    """Each press leaves its row in the log."""
    template_id = shop.desk.draft()
    path, key_id = f"/templates/{template_id}", zoe.key.record.key_id

    zoe.done(f"{path}/publish")
    for act, status in (("pause", "paused"), ("resume", "active"), ("preheat", "active"), ("offline", "offline")):
        zoe.done(f"{path}/act", act=act)
        assert status == _template(shop, template_id)["status"]
    zoe.done(f"{path}/act", act="archive")

    acts = ["publish", "pause", "resume", "preheat", "offline", "archive"]
    assert [(f"template.{act}", key_id) for act in acts] == _audited(shop, template_id)[1:]


def test_what_the_status_forbids_is_refused_as_a_page(shop: Shop, zoe: Visitor) -> None:
    """With the reason, and nothing done."""
    template_id = shop.desk.draft()

    answer = zoe.post(f"/templates/{template_id}/act", act="pause")

    assert 409 == answer.status_code
    assert "In its present status this cannot be done" in answer.text
    assert "draft" == _template(shop, template_id)["status"]


def test_the_stock_is_adjusted_and_not_below_what_is_taken(shop: Shop, zoe: Visitor) -> None:
    """More at once; too few is told at the field."""
    template_id = shop.desk.open(total_quantity=10)
    for user in ("ann", "bob", "cid"):
        shop.front.claimed(template_id, user)
    path = f"/templates/{template_id}/adjust"

    zoe.done(path, total_quantity="15")
    answer = zoe.post(path, total_quantity="2")

    assert 422 == answer.status_code
    assert "So many units are taken already" in answer.text
    assert (15, 12) == (shop.desk.stock(template_id)["total"], shop.desk.stock(template_id)["remaining"])


def test_an_end_that_is_not_touched_stays_to_the_second(shop: Shop, zoe: Visitor) -> None:
    """Sales end at 23:59:59 where people count so."""
    template_id = shop.desk.open(total_quantity=10, claim_end="2036-11-12T23:59:59+08:00")
    found = re.search(r'name="claim_end"[^>]* value="([^"]+)"', zoe.page(f"/templates/{template_id}"))
    assert found is not None

    zoe.done(f"/templates/{template_id}/adjust", total_quantity="15", claim_end=found[1])

    changed = _template(shop, template_id)
    assert (15, "2036-11-12T15:59:59Z") == (changed["total_quantity"], changed["claim_end"])


def test_a_clone_is_made_once(shop: Shop, zoe: Visitor) -> None:
    """However often its button is pressed."""
    template_id = shop.desk.open(name="Origin")
    allotted = _allotted(zoe, f"/templates/{template_id}")

    first, again = (zoe.done(f"/templates/{template_id}/clone", allotted=allotted) for _ in range(2))

    assert first == again
    assert 2 == len(shop.desk.admin.ask("GET", "/v1/templates").ok()["items"])


def test_the_preview_is_the_engines_own(zoe: Visitor) -> None:
    """Down to each line; nothing is written."""
    cart = {"cart_amount_1": "90", "cart_product_1": "p-1", "cart_amount_2": "45", "cart_product_2": "p-2"}

    page = zoe.post("/templates/preview", **FILLED | cart | {"amount": "20"}).text

    assert all(f"CN¥{amount}" in page for amount in ("135.00", "13.33", "6.67", "115.00"))
    assert "立减¥20.00" in page
    assert "CN¥20.00 off from CN¥100.00" in page
    assert "There is no template yet." in zoe.page("/templates")


def test_the_preview_says_why_nothing_is_taken_off(zoe: Visitor) -> None:
    """Below the threshold, or of products it is not for."""
    low = zoe.post("/templates/preview", **FILLED | {"cart_amount_1": "70", "cart_product_1": "p-1"}).text
    other = zoe.post("/templates/preview", **FILLED | {"cart_amount_1": "170", "cart_product_1": "q-9"}).text

    assert "below its threshold: CN¥30.00 more is needed" in low
    assert "no line it is for" in other


def test_an_end_at_midnight_is_told_as_the_end_of_the_day(shop: Shop, zoe: Visitor) -> None:
    """24:00 of the last day of claiming, in the template's zone; a beginning at midnight stays one."""
    whole = {"claim_start": "2036-11-10T16:00:00Z", "claim_end": "2036-11-11T16:00:00Z"}
    template_id = shop.desk.draft(**whole)
    chinese = Visitor(shop, "admin", language="zh")

    listed, page = zoe.page("/templates"), zoe.page(f"/templates/{template_id}")

    assert ["11 Nov 2036, 00:00:00", "11 Nov 2036, 24:00:00"] == re.findall(r"<time[^>]*>(\d+ Nov 2036[^<]*)<", listed)
    assert '<time datetime="2036-11-11T16:00:00Z" title="2036-11-11T16:00:00Z">11 Nov 2036, 24:00:00</time>' in page
    assert "2036-11-11 24:00:00</time>" in chinese.page("/templates")


def test_what_stands_in_the_preview_s_way_is_told_by_its_field(zoe: Visitor) -> None:
    """Of the template and of the sample cart, whose empty lines are left out; 200: nothing was to be saved."""
    wrong = {"total_quantity": "many", "claim_end": "2036-11-01T00:00"}
    cart = {"cart_amount_2": "90", "cart_product_2": "p\x07", "cart_amount_3": "0.001"}

    of_template = zoe.post("/templates/preview", **FILLED | wrong)
    of_price = zoe.post("/templates/preview", **FILLED | cart).text
    of_product = zoe.post("/templates/preview", **FILLED | cart | {"cart_amount_3": ""}).text
    looked = zoe.post("/templates/new", **FILLED | cart | {"allotted": _allotted(zoe), "do": "look"})

    assert 200 == of_template.status_code
    assert {"total_quantity", "claim_end"} == set(re.findall(r'data-field="([^"]+)"', of_template.text))
    assert ["cart_amount_3"] == re.findall(r'data-field="([^"]+)"', of_price)
    assert ["cart_product_2"] == re.findall(r'data-field="([^"]+)"', of_product)
    assert 1 == looked.text.count('aria-invalid="true"')


def test_what_two_must_agree_on_is_decided_by_another(shop: Shop, zoe: Visitor) -> None:
    """Whoever asked may withdraw; another sees the difference, and it is done exactly."""
    template_id = shop.desk.open(approval_required=True)
    approval_id = shop.desk.admin.ask("GET", "/v1/approvals").ok()["items"][0]["approval_id"]
    decide = f"/templates/{template_id}/decide"

    zoe.done(decide, approval_id=approval_id, decision="approved", reason="fine")
    asked = zoe.done(f"/templates/{template_id}/adjust", total_quantity="25")

    assert "done=handed_in" in asked
    inbox = zoe.page("/approvals")
    assert '<del class="was">10</del> <ins class="becomes">25</ins>' in inbox
    assert "Withdraw" in inbox and "Approve" not in inbox.replace("Approvals", "").replace("Approved", "")
    newest = shop.desk.admin.ask("GET", "/v1/approvals").ok()["items"][0]["approval_id"]
    assert 409 == zoe.post(decide, approval_id=newest, decision="approved").status_code
    assert 422 == zoe.post(decide, approval_id=newest, decision="rejected").status_code
    Visitor(shop, "admin", name="Yan").done(decide, approval_id=newest, decision="rejected", reason="too many")
    assert 10 == _template(shop, template_id)["total_quantity"]
    assert "too many" in zoe.page("/approvals?state=all")


def test_a_list_has_pages(shop: Shop, zoe: Visitor) -> None:
    """The newest first; the next from where it ended, of the same status."""
    for number in range(51):
        shop.desk.draft(name=f"number {number:02}")

    first = zoe.page("/templates?status=draft")
    older = re.search(r'href="/console([^"]+)" rel="next"', first)

    assert older is not None
    second = zoe.page(older[1].replace("&amp;", "&"))
    assert "number 50" in first and "number 00" not in first
    assert "number 00" in second and "number 01" not in second


@pytest.mark.parametrize(
    ("name", "shown"), [("<script>alert(1)</script>", "&lt;script&gt;"), ('" onload="x', "&#34; onload=&#34;x")]
)
def test_what_people_type_is_text(shop: Shop, zoe: Visitor, name: str, shown: str) -> None:
    """Wherever it is shown."""
    template_id = shop.desk.open(name=name, approval_required=True)

    for path in ("/templates", f"/templates/{template_id}", "/approvals", f"/live/{template_id}"):
        page = zoe.page(path)
        assert shown in page, path
        assert name not in page, path


def test_the_bodies_of_the_api_and_the_form_agree(shop: Shop, zoe: Visitor) -> None:
    """A draft made here is one made there, but for its number."""
    body = template_body(amount=1_990, claim_start="2036-11-11T00:00:00+08:00", claim_end="2036-11-12T00:00:00+08:00")
    mine = {"products_in": "", "channels": "", "until_end_of_day": "", "per_user_limit": "", "total_quantity": "10"}
    theirs = _template(shop, shop.desk.draft(**body | {"name": "Double Eleven"}))

    ours = _template(shop, _made(zoe, **mine))

    own = {"template_id", "template_no", "created_at", "updated_at"}
    assert {key: theirs[key] for key in theirs.keys() - own} == {key: ours[key] for key in ours.keys() - own}
