"""Campaign batches in the console: made of a file or of tags, watched, stopped, approved, and what failed of them."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from coupon_workers.campaigns.tag_import import put_tags
from coupon_workers.runtime.services import Services
from tests.support.batch_desk import BatchDesk, users_csv
from tests.support.batch_worker import sent_by, work
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop


@pytest.fixture
def desk(shop: Shop) -> BatchDesk:
    """Somebody at the API."""
    return BatchDesk(shop.desk.admin)


def _allotted(zoe: Visitor) -> str:
    found = re.search(r'name="allotted" value="([^"]+)"', zoe.page("/batches/new"))
    assert found is not None
    return found[1]


def _fields(zoe: Visitor, template_id: str, **changed: str) -> dict[str, str]:
    named = {"name": "Regulars", "template_id": template_id, "policy": "all_or_nothing", "tags": "", "start_at": ""}
    return named | {"allotted": _allotted(zoe)} | changed


def _number(leads: str) -> str:
    return leads.rpartition("/")[2].partition("?")[0]


def _work(shop: Shop) -> None:
    work(shop.services, sent_by(shop.services))


def test_as_the_form_comes_its_counts_are_seen_before_anything_is_issued(
    shop: Shop, zoe: Visitor, desk: BatchDesk
) -> None:
    """It starts in ten minutes; emptied, it would start as soon as they are counted."""
    template_id = shop.desk.open(total_quantity=10)
    shown = zoe.page("/batches/new")
    start = re.search(r'name="start_at" type="datetime-local" value="([^"]+)"', shown)
    assert start is not None

    made = zoe.send_file("/batches/new", users_csv("ann"), "a.csv", **_fields(zoe, template_id, start_at=start[1]))
    _work(shop)

    moving = zoe.get(f"/data/batches/{_number(made.location)}").get_json()
    assert ("1", "0") == (moving["texts"]["users"], moving["texts"]["issued"])
    assert "It starts at" in zoe.page(f"/batches/{_number(made.location)}")
    assert "before anybody has looked" in shown


def test_a_file_becomes_a_batch_and_its_page_adds_up(shop: Shop, zoe: Visitor, desk: BatchDesk) -> None:
    """Every row is somewhere; what failed is a file to download."""
    template_id = shop.desk.open(total_quantity=10)
    file = users_csv("ann", "bob", "ann", "not a user")

    made = zoe.send_file("/batches/new", file, "north.csv", **_fields(zoe, template_id))
    batch_no = _number(made.location)
    _work(shop)

    moving = zoe.get(f"/data/batches/{batch_no}").get_json()
    assert 303 == made.status_code
    assert ("done", True, "100%") == (moving["stands"].strip(), moving["over"], moving["texts"]["percent"])
    assert ("2", "1", "1", "4") == tuple(moving["texts"][name] for name in ("issued", "duplicate", "invalid", "rows"))
    assert 100 == sum(part["width"] for part in moving["parts"].values())
    page = zoe.page(f"/batches/{batch_no}")
    assert "north.csv" in page and "CN¥40.00" in page and "Cancel" not in page
    failures = zoe.get(f"/batches/{batch_no}/failures.csv")
    assert "attachment" in failures.headers["Content-Disposition"]
    assert desk.failures(batch_no).body == failures.data


def test_a_form_that_is_sent_twice_makes_one_batch(shop: Shop, zoe: Visitor, desk: BatchDesk) -> None:
    """A double press; the log has it once, by the key that was used."""
    fields = _fields(zoe, shop.desk.open())

    first, again = (zoe.send_file("/batches/new", users_csv("ann"), "a.csv", **fields).location for _ in range(2))

    assert first == again
    assert 1 == len(desk.page()["items"])
    assert ["batch.create"] == _audited(shop, _number(first), zoe)


def test_tags_become_a_batch(shop: Shop, zoe: Visitor, desk: BatchDesk) -> None:
    """Without a file, which a browser sends all the same, empty and without a name."""
    for user in ("ann", "bob"):
        put_tags(shop.services, user, ["vip"])
    fields = _fields(zoe, shop.desk.open(), tags="vip and not churned")

    made = zoe.send_file("/batches/new", b"", "", **fields)
    _work(shop)

    assert 2 == desk.read(_number(made.location))["issued"]


@pytest.mark.parametrize(
    ("content", "name", "changed", "told"),
    [
        (b"", "a.csv", {}, "The file is empty."),
        (b"name\nann\n", "a.csv", {}, "The file has no column user_id."),
        (b"user_id\n", "a.csv", {}, "nobody would get a coupon"),
        (b"", "", {}, "Fill this in."),
        (b"user_id\nann\n", "a.csv", {"tags": "vip"}, "not both"),
        (b"", "", {"tags": "vip and ("}, "At character 10 it cannot be read"),
        (b"user_id\nann\n", "a.csv", {"name": ""}, "Fill this in."),
        (b"user_id\nann\n", "a.csv", {"template_id": ""}, "Choose one."),
        (b"user_id\nann\n", "a.csv", {"template_id": "7001"}, "There is no such template."),
        (b"user_id\nann\n", "a.csv", {"start_at": "tomorrow"}, "Write a date and a time"),
        (b"user_id\nann\n", "a.csv", {"start_at": "2099-01-01T00:00"}, "before the end of claiming"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(
    shop: Shop, zoe: Visitor, desk: BatchDesk, content: bytes, name: str, changed: dict[str, str], told: str
) -> None:
    """Nothing is made, and what was typed stays."""
    fields = _fields(zoe, shop.desk.open()) | changed

    answer = zoe.send_file("/batches/new", content, name, **fields)

    assert 422 == answer.status_code
    assert told in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert f'value="{changed.get("name", "Regulars")}"' in answer.text
    assert [] == desk.page()["items"]


def test_a_file_without_the_sessions_token_is_not_read(shop: Shop, zoe: Visitor, desk: BatchDesk) -> None:
    """The token stands in the address of the form."""
    fields = _fields(zoe, shop.desk.open())

    answer = zoe.client.post("/console/batches/new", data=fields, content_type="multipart/form-data")

    assert 403 == answer.status_code
    assert [] == desk.page()["items"]


def test_a_batch_is_paused_resumed_and_cancelled(shop: Shop, zoe: Visitor, desk: BatchDesk) -> None:
    """Each press leaves its row in the log; what the status forbids is refused with the reason."""
    batch_no = desk.made(shop.desk.open(total_quantity=10), "ann", "bob")
    work(shop.services, sent_by(shop.services), most=1)

    for act, status in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert act.capitalize() in zoe.page(f"/batches/{batch_no}")
        zoe.done(f"/batches/{batch_no}/act", act=act)
        assert status == desk.read(batch_no)["status"]
    refused = zoe.post(f"/batches/{batch_no}/act", act="pause")

    assert 409 == refused.status_code
    assert "In its present status this cannot be done" in refused.text
    assert ["batch.pause", "batch.resume", "batch.cancel"] == _audited(shop, batch_no, zoe)


def test_a_large_one_is_approved_by_another_who_sees_what_it_costs(services: Services) -> None:
    """Whoever made it has no button for it, and is refused. The inbox names it meanwhile."""
    shop = Shop(services, claim_rate=0, batch_approval_above=1)
    zoe, yan = Visitor(shop, "admin"), Visitor(shop, "admin", name="Yan")
    made = zoe.send_file(
        "/batches/new", users_csv("ann", "bob"), "a.csv", **_fields(zoe, shop.desk.open(total_quantity=10))
    )
    batch_no = _number(made.location)
    work(shop.services, sent_by(shop.services))

    mine, theirs = zoe.page(f"/batches/{batch_no}"), yan.page(f"/batches/{batch_no}")

    link = f'href="/console/batches/{batch_no}"'
    assert link in yan.page("/approvals") and "No template waits." in yan.page("/approvals")
    assert "Your key made it, so another approves." in mine and 'value="approve"' not in mine
    assert "2 users get a coupon. At worst that costs CN¥40.00." in theirs
    assert 409 == zoe.post(f"/batches/{batch_no}/act", act="approve").status_code
    yan.done(f"/batches/{batch_no}/act", act="approve")
    work(shop.services, sent_by(shop.services))
    assert "done" == BatchDesk(shop.desk.admin).read(batch_no)["status"]
    assert link not in yan.page("/approvals")


def _audited(shop: Shop, batch_no: str, by: Visitor) -> list[str]:
    """What the log says was done to the batch by this key."""
    with shop.services.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT action FROM audit_log WHERE subject = :subject AND operator = :operator ORDER BY audit_id"),
            {"subject": f"batch:{batch_no}", "operator": by.key.record.key_id},
        )
        return [row.action for row in rows]
