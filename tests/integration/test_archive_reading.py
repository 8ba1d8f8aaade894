"""What is archived is readable for ever, and answered as if it had not been moved (DESIGN 3.2, 3.3 and 10)."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event, text

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.claim_status import claim_status, find_claims_of_requests
from coupon_workers.coupons.archive_sql import BY_KEYS, MOVE
from coupon_workers.finance.close_sql import FREEZE, FREEZE_OLD, freeze_of
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_change import patch_template
from coupon_workers.templates.template_desk import preheat, resume_template
from coupon_workers.templates.template_reading import read_stats
from coupon_workers.wallet.wallet import find_coupon, read_coupon, read_wallet
from tests.support.archiving import LONG_AFTER, ArchiveShop
from tests.support.campaign import plan_campaign
from tests.support.closing import by_template
from tests.support.gift import Refusal, refusal
from tests.support.order_shop import START, refused
from tests.support.sale import Sale, assert_sound, gate_of

DAY = "2026-11-11"


@pytest.fixture
def shop(services: Services) -> ArchiveShop:
    """A shop on its first day."""
    return ArchiveShop(services)


def _old(shop: ArchiveShop) -> None:
    shop.expire()
    shop.clock.now = LONG_AFTER


def test_a_coupon_is_shown_with_its_history_as_before(shop: ArchiveShop) -> None:
    """By its number, to its user alone; the list of a wallet has only the living ones."""
    template = shop.template()
    coupon, other = shop.ended(template), shop.issue(template, valid_to=LONG_AFTER + timedelta(days=1))
    _old(shop)
    look = partial(read_coupon, shop.services, shop.user, coupon)
    before = look()

    shop.archive()

    assert before is not None
    assert ["issue", "expire"] == [step["action"] for step in before["history"]]
    assert before == look()
    assert {name: value for name, value in before.items() if name != "history"} == find_coupon(
        shop.services, shop.user, coupon
    )
    assert None is find_coupon(shop.services, "bob", coupon)
    assert [str(other)] == [item["coupon_no"] for item in read_wallet(shop.services, shop.user, limit=9).items]


def test_a_claim_is_answered_as_before(shop: ArchiveShop) -> None:
    """By its number, and by its request; a coupon of another source was never a claim."""
    template = shop.template()
    claim, granted = shop.ended(template), shop.ended(template, source="manual")
    _old(shop)
    request = ClaimRequest(template, shop.user, "r1", "")
    before = claim_status(shop.services, claim), find_claims_of_requests(shop.services, [request])

    shop.archive()

    assert ("issued", claim) == (before[0].state if before[0] else None, before[1][request].claim_id)
    assert before == (claim_status(shop.services, claim), find_claims_of_requests(shop.services, [request]))
    assert None is claim_status(shop.services, granted)


def test_a_transfer_that_is_sent_again_is_the_same(shop: ArchiveShop) -> None:
    """Years later; and a coupon that ended otherwise is refused as before."""
    template = shop.template(transferable=True)
    given, expired = shop.ended(template), shop.ended(template)
    received = shop.give(given, "bob")
    _old(shop)
    shop.archive()

    assert received == shop.give(given, "bob")
    assert Refusal("COUPON_NOT_AVAILABLE", (("coupon_status", "transferred"),)) == refusal(
        lambda: shop.give(given, "eve")
    )
    assert "EXPIRED" == refusal(lambda: shop.give(expired, "bob")).code  # type: ignore[union-attr]
    assert_sound(shop.services)


def test_an_order_that_names_it_is_told_that_it_has_ended(shop: ArchiveShop) -> None:
    """Not that there is no such coupon; beside one that may be used."""
    template = shop.template()
    coupon, good = shop.ended(template), shop.issue(template, valid_to=LONG_AFTER + timedelta(days=1))
    _old(shop)
    shop.archive()

    named = shop.quote([good, coupon])
    code, evidence = refused(lambda: shop.lock("o1", [good, coupon]))

    assert ("EXPIRED", str(coupon), "expired") == (code, evidence["coupon_no"], evidence["coupon_status"])
    assert [("EXPIRED", str(coupon))] == [(each["code"], each["coupon_no"]) for each in named["rejected"]]
    assert [str(good)] == [each["coupon_no"] for each in named["applied"]]


def test_a_day_that_is_closed_anew_has_what_it_had(shop: ArchiveShop) -> None:
    """Issues, ends and amounts of archived coupons among those of living ones."""
    template = shop.template(transferable=True)
    shop.buy("o1", template)
    shop.ended(template)
    given = shop.issue(template)
    shop.give(given, "bob")
    shop.expire()
    shop.clock.pass_by(days=8)
    shop.expire()
    first = shop.close(DAY)
    shop.clock.now = LONG_AFTER
    moved = shop.archive()
    assert_sound(shop.services)

    shop.reopen(DAY)
    second = shop.close(DAY)

    assert (3, (3, 1, 0, 1)) == (moved, by_template(first)[template][0])
    assert (2, by_template(first)) == (second.revision, by_template(second))
    assert_sound(shop.services)


def test_an_ordinary_day_is_read_as_ever() -> None:
    """Nothing of the last month can lie in the archive."""
    now = LONG_AFTER

    assert FREEZE is freeze_of(now - timedelta(days=28), now)
    assert FREEZE_OLD is freeze_of(now - timedelta(days=30), now)
    assert "archive" not in FREEZE.text


def test_counts_of_a_template_and_a_batch_go_on_adding_up(shop: ArchiveShop) -> None:
    """What was issued and given stays what it was; how many lie in the archive is said beside it."""
    template = shop.template(per_user_limit=1)
    sale = Sale(shop.services, template, gate_of(shop.services))
    batch = plan_campaign(sale, ["u1", "u2", "u3"])
    shop.ended(template, "u4")
    sale.preheat()
    batch.start()
    batch.work()
    shop.execute("UPDATE coupon SET valid_to = :end", end=shop.clock.now + timedelta(minutes=1))
    shop.execute("UPDATE coupon_template SET updated_at = :now", now=START)
    _old(shop)

    assert 4 == shop.archive()

    stats = read_stats(shop.services, template)
    assert ((4, 4, 3), (3, 3)) == (
        shop.counters(template),
        (batch.books["issued_count"], batch.books["archived_count"]),
    )
    assert (4, 4, 0) == (stats.issued, stats.archived, stats.by_status.expired)
    assert_sound(shop.services)


def test_a_template_with_archived_coupons_does_not_open_again(shop: ArchiveShop) -> None:
    """Its end is not put off, and its gate is not rebuilt; a name may change, and a pause may end."""
    template = shop.template(status="paused")
    shop.ended(template)
    _old(shop)
    shop.archive()
    later = {"claim_end": (LONG_AFTER + timedelta(days=1)).isoformat()}

    refusals = [
        refusal(lambda: patch_template(shop.services, template, later)),
        refusal(lambda: preheat(shop.services, template)),
    ]

    assert [Refusal("HAS_ARCHIVED", (("archived", 1),))] * 2 == refusals
    assert "Singles' Day" == patch_template(shop.services, template, {"name": "Singles' Day"}).name
    assert "ended" == resume_template(shop.services, template).status
    assert_sound(shop.services)


def test_a_claim_that_comes_out_of_an_old_copy_of_redis_finds_its_coupon(shop: ArchiveShop) -> None:
    """A stream of long ago, settled again: the same claim is acknowledged, another is held to the limit."""
    template = shop.template(per_user_limit=1, total_quantity=5)
    sale = Sale(shop.services, template, gate_of(shop.services))
    claim = shop.ended(template, "u1")
    _old(shop)
    shop.archive()

    entry: dict[str, Any] = _entry(claim, "u1", "r1")
    sale.add_entry(entry)
    sale.add_entry(_entry(claim + 1, "u1", "r2"))
    settled = sale.drain()

    assert (2, {}) == (settled, sale.coupons())
    assert {claim + 1: "LIMIT_REACHED"} == sale.rejections()
    assert (1, 1, 0) == shop.counters(template)


def _entry(claim_id: int, user: str, request: str) -> dict[str, Any]:
    """An entry of the pending stream, as ``lua/claim.lua`` writes it."""
    return {"c": claim_id, "u": user, "r": request, "s": 1, "t": 1, "d": "", "e": 0, "h": ""}


def test_old_coupons_are_found_by_keys(shop: ArchiveShop) -> None:
    """Whatever the archive holds: no question goes through all of it."""
    template = shop.template()
    coupon = shop.ended(template)
    _old(shop)
    shop.archive()
    shop.execute(
        "INSERT INTO coupon_archive SELECT 'm' || n, n, template_id, batch_no, claim_seq, request_id, status, version,"
        " face_value_minor, template_version, valid_from, valid_to, order_no, source, channel, claimed_at, issued_at,"
        " updated_at, archived_at FROM coupon_archive CROSS JOIN generate_series(1, 20000) AS n"
    )
    shop.execute("ANALYZE coupon_archive, coupon_flow_archive")
    plans: list[str] = []

    def explain(connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "_archive" in statement and not statement.startswith(("EXPLAIN", "PREPARE", "EXECUTE")):
            with connection.engine.connect() as other:
                plans.append("\n".join(other.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars()))

    event.listen(shop.services.engine, "before_cursor_execute", explain)
    try:
        read_coupon(shop.services, shop.user, coupon)
        claim_status(shop.services, coupon)
        find_claims_of_requests(shop.services, [ClaimRequest(template, shop.user, "r1", "")])
        refusal(lambda: shop.give(coupon, "bob"))
    finally:
        event.remove(shop.services.engine, "before_cursor_execute", explain)

    assert 5 == len(plans)
    scans = re.findall(r"\w+ Scan[^\n]* on coupon\w*_archive[^\n]*\n[^\n]*", "\n".join(plans))
    assert all("Cond" in scan for scan in scans), scans
    assert not re.search(r"Seq Scan", "\n".join(plans)), plans


def test_a_chunk_is_found_by_indexes(shop: ArchiveShop) -> None:
    """Coupons and steps by their keys, in a table of many templates, whatever the statistics know."""
    template = shop.template()
    coupon = shop.ended(template)
    _old(shop)
    shop.execute(
        "INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from,"
        " valid_to, source, claimed_at) SELECT 'm' || n, n, 1000 + n % 50, 1, 'r', 1, now(), now() + interval '1 day',"
        " 'claim', now() FROM generate_series(1, 20000) AS n"
    )
    with shop.services.engine.begin() as connection:
        named = {"template_id": template, "before": START, "now": LONG_AFTER, "cursor": 0, "chunk": 1000}
        connection.execute(BY_KEYS)
        plan = "\n".join(connection.scalars(text(f"EXPLAIN {MOVE.text}"), named))

    assert not re.search(r"Seq Scan|Bitmap|Sort  |Hash Join|Merge Join|hashed", plan), plan
    assert re.search(r"Merge Append[^+]*Index Scan using coupon_p0_template_id_coupon_id_idx", plan), plan
    assert re.search(r"Index Scan using coupon_flow_p\d_pkey", plan), plan
    assert {coupon} <= shop.living()
