"""Campaign batches over HTTP, from the form to the last coupon; the test plays the worker."""

from __future__ import annotations

import csv
import io
import time
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.access.api_key import create_key
from coupon_workers.access.signature import sign
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import Task, stage_batch
from tests.support.batch_desk import BOUNDARY, BatchDesk, Part, form, users_csv
from tests.support.batch_worker import work
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop, rows_by_table
from tests.support.http_system import System


@pytest.fixture
def desk(shop: Shop) -> BatchDesk:
    """An operator's desk."""
    return BatchDesk(shop.desk.admin)


def _work(shop: Shop) -> None:
    work(shop.services, shop.services.post.sent)  # type: ignore[attr-defined]  # it is the test's post box


def _only(read: dict[str, Any], *names: str) -> list[Any]:
    return [read[name] for name in names]


def test_a_batch_is_staged_issued_and_adds_up(shop: Shop, desk: BatchDesk) -> None:
    """Every row is issued, a duplicate or invalid, and each user has the coupon in the wallet."""
    template_id = shop.desk.open(total_quantity=10)
    file = users_csv("u1", "u2", "u1", "has space", "u3", "")

    made = desk.post(template_id, file).ok(202)
    waiting = desk.read(made["batch_no"])
    _work(shop)
    done = desk.read(made["batch_no"])

    assert "staging" == made["status"]
    assert ["staging", 0, 0.0, None, None] == _only(
        waiting, "status", "rows", "percent", "rows_per_second", "started_at"
    )
    assert ["done", 5, 4, 1, 1, 3, 0, 0] == _only(
        done, "status", "rows", "valid", "duplicate", "invalid", "issued", "refused", "pending"
    )
    assert [100.0, 0, None] == _only(done, "percent", "reserved", "eta_seconds")
    assert done["shards"]["total"] == done["shards"]["done"] > 0
    assert done["rows_per_second"] > 0
    assert datetime.fromisoformat(done["finished_at"]) >= datetime.fromisoformat(done["started_at"])
    coupons = [shop.front.wallet(user).ok()["items"] for user in ("u1", "u2", "u3")]
    assert [["batch"]] * 3 == [[coupon["source"] for coupon in items] for items in coupons]
    shop.assert_sound()


def test_rows_without_a_coupon_are_a_file(shop: Shop, desk: BatchDesk) -> None:
    """In the order of the audience, and no formula is left for a spreadsheet to compute."""
    template_id = shop.desk.open()
    batch_no = desk.made(template_id, "u1", "=1 2", "u1", "u2")
    _work(shop)

    answer = desk.failures(batch_no)

    header, *rows = csv.reader(io.StringIO(answer.body.decode()))
    assert ["row", "value", "reason"] == header
    assert [("3", "'=1 2"), ("4", "u1")] == [(row_no, value) for row_no, value, _ in rows]
    assert [True, True] == [
        reason.startswith(code) for (_, _, reason), code in zip(rows, ("INVALID", "DUPLICATE"), strict=True)
    ]
    assert "text/csv; charset=utf-8" == answer.headers["content-type"]
    assert f'attachment; filename="batch-{batch_no}-failures.csv"' == answer.headers["content-disposition"]


def test_a_batch_of_tags_needs_no_file(shop: Shop, desk: BatchDesk) -> None:
    """Tags are set over HTTP, and read back."""
    template_id = shop.desk.open()
    for user, tags in (("u1", ["vip"]), ("u2", ["vip", "churned"]), ("a/b", ["vip", "new"])):
        desk.admin.ask("PUT", f"/v1/users/{user}/tags", {"tags": tags}).ok()

    batch_no = desk.post_tags(template_id, "vip and not churned").ok(202)["batch_no"]
    _work(shop)

    assert ["new", "vip"] == desk.admin.ask("GET", "/v1/users/a%2Fb/tags").ok()["tags"]
    assert ["done", 2, "vip and not churned", None] == _only(
        desk.read(batch_no), "status", "issued", "tags", "file_name"
    )


def test_best_effort_issues_what_there_is(shop: Shop, desk: BatchDesk) -> None:
    """The other policy fails as a whole; both add up."""
    template_id = shop.desk.open(total_quantity=2)

    failed = desk.made(template_id, "u1", "u2", "u3")
    _work(shop)
    served = desk.made(template_id, "u1", "u2", "u3", policy="best_effort")
    _work(shop)

    failed_batch = desk.read(failed)
    assert ["failed", 0, "all_or_nothing"] == _only(failed_batch, "status", "issued", "policy")
    assert failed_batch["reason"].startswith("NOT_ENOUGH_STOCK")
    assert ["done", 2, 1, "best_effort"] == _only(desk.read(served), "status", "issued", "refused", "policy")
    shop.assert_sound()


def test_the_same_form_under_the_same_key_is_one_batch(shop: Shop, desk: BatchDesk) -> None:
    """Whatever line stands between its parts, and in whatever order they come; another file is a mismatch."""
    template_id = shop.desk.open()
    file = users_csv(*(f"u{number}" for number in range(30_000)))
    parts: list[Part] = [
        ("name", None, b"regulars"),
        ("file", "a.csv", file),
        ("template_id", None, template_id.encode()),
    ]

    first = desk.post(template_id, file, key="k1")
    again = desk.send(form(parts, "another-line"), "another-line", Idempotency_Key="k1")
    other = desk.post(template_id, file + b"one-more\n", key="k1")
    renamed = desk.post(template_id, file, {"name": "others"}, key="k1")

    assert first.ok(202) == again.ok(202)
    assert "true" == again.headers["idempotency-replayed"]
    other.problem(422, "IDEMPOTENCY_MISMATCH")
    renamed.problem(422, "IDEMPOTENCY_MISMATCH")
    assert 1 == len(desk.page()["items"])


def test_a_form_that_is_refused_uses_up_no_key(shop: Shop, desk: BatchDesk) -> None:
    """The right file goes under the same key."""
    template_id = shop.desk.open()

    desk.post(template_id, b"", key="k1").problem(422, "VALIDATION_FAILED")

    desk.post(template_id, users_csv("u1"), key="k1").ok(202)


def test_a_large_file_is_kept_as_it_came(shop: Shop, desk: BatchDesk) -> None:
    """In parts, byte for byte, with whatever looks like the end of a part in it."""
    template_id = shop.desk.open()
    lines = b"".join(b"u%d\r\n--not-%d\r\n" % (number, number) for number in range(150_000))
    file = b"user_id\r\n" + lines

    batch_no = desk.post(template_id, file).ok(202)["batch_no"]

    with shop.services.engine.connect() as connection:
        parts = connection.scalars(
            text("SELECT content FROM audience_file WHERE batch_id = :batch_id ORDER BY part_no"),
            {"batch_id": batch_no},
        ).all()
    assert len(parts) > 2
    assert sha256(file).digest() == sha256(b"".join(map(bytes, parts))).digest()


def test_a_batch_whose_message_was_lost_is_made_all_the_same(shop: Shop, services: Services) -> None:
    """It is stored, and the sweep sends what nobody has begun."""

    class Lost:
        def send(self, task: Task) -> None:
            raise StoreUnavailable("broker", "gone")

    template_id = shop.desk.open()
    shop.services.post.sent.clear()  # type: ignore[attr-defined]
    cut_off = Shop(replace(services, post=Lost()))

    made = BatchDesk(cut_off.desk.admin).post(template_id, users_csv("u1"))

    assert "staging" == made.ok(202)["status"]
    assert [] == shop.services.post.sent  # type: ignore[attr-defined]


def test_a_batch_that_is_taken_on_is_sent_to_the_workers(shop: Shop, desk: BatchDesk) -> None:
    """One message with its number."""
    template_id = shop.desk.open()
    shop.services.post.sent.clear()  # type: ignore[attr-defined]

    batch_no = desk.made(template_id, "u1")

    assert [stage_batch(int(batch_no))] == shop.services.post.sent  # type: ignore[attr-defined]


def test_a_batch_may_wait_for_its_template(shop: Shop, desk: BatchDesk) -> None:
    """Scheduled, with a start in its time; it stands ready until then."""
    coming = shop.desk.open(claim_start=from_now(hours=1))
    start_at = from_now(hours=2)

    batch_no = desk.made(coming, "u1", start_at=start_at)
    _work(shop)

    assert ["ready", start_at, 0] == _only(desk.read(batch_no), "status", "start_at", "issued")


def test_a_large_batch_waits_for_another_key(services: Services) -> None:
    """409 for whoever made it; whoever else approves it starts it."""
    shop = Shop(services, batch_approval_above=1)
    desk, other = BatchDesk(shop.desk.admin), BatchDesk(shop.caller("admin"))
    template_id = shop.desk.open()
    batch_no = desk.made(template_id, "u1", "u2")
    _work(shop)

    waiting = desk.read(batch_no)
    desk.act(batch_no, "approve").problem(409, "OWN_BATCH")
    other.act(batch_no, "approve").ok()
    _work(shop)

    assert ["ready", True, None] == _only(waiting, "status", "needs_approval", "approved_by")
    assert ["done", 2] == _only(desk.read(batch_no), "status", "issued")


def test_a_batch_is_paused_resumed_and_cancelled(shop: Shop, desk: BatchDesk) -> None:
    """Each answers how it stands then; what cannot be is 409 with the status."""
    template_id = shop.desk.open()
    batch_no = desk.made(template_id, "u1", "u2", start_at=from_now(hours=1))
    too_early = desk.act(batch_no, "resume")
    _work(shop)

    moved = [desk.act(batch_no, action).ok()["status"] for action in ("pause", "resume", "cancel")]
    too_late = desk.act(batch_no, "pause")

    assert "staging" == too_early.problem(409, "INVALID_STATUS")["current_status"]
    assert ["paused", "ready", "cancelled"] == moved
    assert "cancelled" == too_late.problem(409, "INVALID_STATUS")["current_status"]
    assert 0 == shop.desk.stock(template_id)["reserved"]


def test_batches_are_listed_in_pages(shop: Shop, desk: BatchDesk) -> None:
    """Newest first, by status or template."""
    first, second = shop.desk.open(), shop.desk.open()
    made = [desk.made(template_id, "u1") for template_id in (first, second, first)]
    desk.act(made[0], "cancel").ok()

    page = desk.page("?limit=2")
    rest = desk.page(f"?limit=2&cursor={page['next_cursor']}")
    of_first = desk.page(f"?template_id={first}")
    staging = desk.page("?status=staging")

    numbers = [[batch["batch_no"] for batch in found["items"]] for found in (page, rest, of_first, staging)]
    assert [made[:0:-1], made[:1], [made[2], made[0]], made[:0:-1]] == numbers
    assert rest["next_cursor"] is None


@pytest.mark.parametrize("altered", [False, True])
def test_a_form_may_be_signed(shop: Shop, altered: bool) -> None:
    """It is hashed on its way to the disk; an altered one makes nothing."""
    template_id = shop.desk.open()
    key = create_key(shop.services.engine, name="signed", scopes=["admin"], signed=True).key
    body = form([("template_id", None, template_id.encode()), ("name", None, b"n"), ("file", "a.csv", users_csv("u1"))])
    signed_at, nonce = str(int(time.time())), "nonce-0123456789abcdef"
    signature = sign(
        sha256(key.encode()).hexdigest(), method="POST", target="/v1/batches", time=signed_at, nonce=nonce, body=body
    )

    answer = shop.app.test_client().post(
        "/v1/batches",
        data=body.replace(b"u1", b"u2") if altered else body,
        content_type=f"multipart/form-data; boundary={BOUNDARY}",
        headers={
            "Authorization": f"Bearer {key}",
            "X-Signature-Time": signed_at,
            "X-Signature-Nonce": nonce,
            "X-Signature": signature,
        },
    )

    assert (401 if altered else 202) == answer.status_code
    assert (0 if altered else 1) == rows_by_table(shop.services)["issue_batch"]


def test_a_batch_goes_through_every_process_of_an_installation(system: System) -> None:
    """Uploaded over the network, staged and issued by the workers, watched from another shell."""
    desk = BatchDesk(system.admin)
    template_id = system.desk.open(total_quantity=20_000)
    users = [f"u{number}" for number in range(20_000)]

    made = desk.post(template_id, users_csv(*users, "u7", "a b"), key="regulars").ok(202)
    again = desk.post(template_id, users_csv(*users, "u7", "a b"), key="regulars").ok(202)
    watched = system.command("batch", "show", made["batch_no"], "--wait")

    assert made == again
    assert 0 == watched.returncode, watched.stderr
    batch = desk.read(made["batch_no"])
    assert ["done", 20_002, 20_000, 1, 1, 0] == _only(
        batch, "status", "rows", "issued", "duplicate", "invalid", "pending"
    )
    assert [b"row,value,reason", b"20002,u7", b"20003,a b"] == [
        line.rpartition(b",")[0] if number else line
        for number, line in enumerate(desk.failures(made["batch_no"]).body.splitlines())
    ]
    assert ["batch"] == [coupon["source"] for coupon in system.front.wallet("u19999").ok()["items"]]
    system.assert_sound()
