"""Stock is reconciled: each thing that can be wrong between the stores is found once, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text

from coupon_workers.claiming.claim_batch import write_batch
from coupon_workers.claiming.read_ahead import ReadAhead
from coupon_workers.errors import Conflict
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.stock_differences import stock_differences
from coupon_workers.runtime.services import Services
from tests.support.recon_reading import BRIEFLY_S, differences, found, only, repair, work
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.template import insert_template

USERS = ("ann", "bob", "cid", "dan")
COLD = 7_002


@pytest.fixture
def sale(services: Services) -> Sale:
    """Of ten units ann, bob and cid have one each, and cid a second one that dan gave him; eve was rejected, dan's
    claim is queued. Another template is cold."""
    insert_template(services.engine, template_id=COLD)
    sale = open_sale(services, per_user_limit=2)
    sale.claim_each(USERS[:3])
    sale.drain()
    sale.claim("eve")
    sql(sale, "UPDATE coupon_template SET pause_epoch = pause_epoch + 1, version = version + 1")
    sale.drain()
    sale.preheat()
    sale.claim("dan")
    services.post.sent.clear()  # type: ignore[attr-defined]
    return sale


def sql(sale: Sale, statement: str, **arguments: object) -> None:
    """Change the database behind everyone's back."""
    with sale.services.engine.begin() as connection:
        connection.execute(text(statement), arguments)


def issue_rows(sale: Sale, users: range, template_id: int) -> None:
    """Coupons that no claim has led to, with their history."""
    for number in users:
        named = {"user": f"x{number}", "id": 10 + number, "template": template_id, "request": f"x{number}"}
        sql(
            sale,
            "INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from,"
            " valid_to, source, claimed_at) VALUES (:user, :id, :template, 1, :request, 1, now(),"
            " now() + interval '1 day', 'claim', now())",
            **named,
        )
        sql(
            sale,
            "INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator)"
            " VALUES (:user, :id, 1, 'issue', 'unused', 'claim')",
            **named,
        )


def lose_entry(sale: Sale) -> None:
    """The queue forgets dan's claim; the gate still counts on it."""
    sale.services.redis.delete(sale.keys.pending)


def untold(sale: Sale) -> None:
    """A coupon whose claim the gate still calls queued."""
    [(coupon_id,)] = sale.rows("SELECT coupon_id FROM coupon WHERE user_id = 'ann'")
    sale.services.redis.hset(sale.keys.requests, "ann r1", f"{coupon_id} queued")


def untold_rejection(sale: Sale) -> None:
    """A rejection that the gate was not told of: the unit and the allowance are not given back."""
    [claim_id] = sale.rejections()
    sale.services.redis.hset(sale.keys.requests, "eve r1", f"{claim_id} queued")
    sale.services.redis.decr(sale.keys.stock)
    sale.services.redis.hset(sale.keys.takers, "eve", "1 1")


def lose_coupon(sale: Sale) -> None:
    """A row is gone, with its history."""
    sql(sale, "DELETE FROM coupon_flow WHERE user_id = 'bob'")
    sql(sale, "DELETE FROM coupon WHERE user_id = 'bob'")


def set_counter(name: str, value: int) -> Callable[[Sale], None]:
    """A counter says something else."""
    return lambda sale: sql(sale, f"UPDATE coupon_template SET {name} = {value} WHERE template_id = {sale.template_id}")


def set_taker(user: str, value: str) -> Callable[[Sale], object]:
    """The gate counts a user otherwise."""
    return lambda sale: sale.services.redis.hset(sale.keys.takers, user, value)


DAMAGE: dict[str, tuple[Callable[[Sale], object], str, RepairName | None]] = {
    "more coupons than units": (
        lambda s: issue_rows(s, range(8), s.template_id),
        "over_issued",
        None,
    ),
    "coupons of no template": (lambda s: issue_rows(s, range(1), 999), "over_issued", None),
    "a counter above its coupons": (
        set_counter("issued_quantity", 5),
        "issued_counter_differs",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "a counter below its coupons": (
        set_counter("issued_quantity", 2),
        "issued_counter_differs",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "a counter of rejections": (
        set_counter("rejected_quantity", 3),
        "rejected_counter_differs",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "a coupon lost": (lose_coupon, "coupons_differ", None),
    "a coupon made of nothing": (lambda s: issue_rows(s, range(1), s.template_id), "coupons_differ", None),
    "a coupon that the gate forgot": (
        lambda s: (issue_rows(s, range(1), s.template_id), set_counter("issued_quantity", 4)(s)),
        "gate_stock_differs",
        RepairName.PREHEAT,
    ),
    "a unit lost": (lambda s: s.services.redis.decr(s.keys.stock), "gate_stock_differs", RepairName.PREHEAT),
    "a unit too many": (lambda s: s.services.redis.incr(s.keys.stock), "gate_stock_differs", RepairName.PREHEAT),
    "a user counted too often": (set_taker("ann", "2 1"), "taker_count_differs", RepairName.PREHEAT),
    "a user forgotten": (
        lambda s: s.services.redis.hdel(s.keys.takers, "ann"),
        "taker_count_differs",
        RepairName.PREHEAT,
    ),
    "a user counted for another": (
        lambda s: (set_taker("ann", "0 1")(s), set_taker("bob", "2 1")(s)),
        "taker_count_differs",
        RepairName.PREHEAT,
    ),
    "a user counted who has nothing": (set_taker("fay", "1 1"), "taker_count_differs", RepairName.PREHEAT),
    "a claim lost": (lose_entry, "claim_lost", None),
    "a claim called queued that was issued": (untold, "claim_end_untold", RepairName.PREHEAT),
    "a claim called queued that was rejected": (untold_rejection, "claim_end_untold", RepairName.PREHEAT),
    "a mark of a claim that nobody made": (
        lambda s: s.services.redis.hset(s.keys.claims, "4711", "1"),
        "claim_lost",
        None,
    ),
}


def test_a_sound_sale_has_no_differences(sale: Sale) -> None:
    """With claims queued, issued and rejected; and what was examined are the templates, warm or cold."""
    reading = stock_differences(sale.services, sale.services.clock(), None, patience_s=0)

    assert [] == found(sale.services)
    assert (2, frozenset(), False) == (reading.examined, reading.unjudged, reading.truncated)
    assert_sound(sale.services)


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_wrong_is_found_once(sale: Sale, damage: str) -> None:
    """One root, one difference, with the repair that mends it; read again it is the same."""
    act, finding_class, proposed = DAMAGE[damage]
    act(sale)

    difference = only(sale.services)

    assert (finding_class, proposed) == (difference.finding_class, difference.repair)
    assert [difference] == differences(sale.services)


@pytest.mark.parametrize("damage", [name for name, (_, _, proposed) in DAMAGE.items() if proposed])
def test_what_is_mended_is_gone(sale: Sale, damage: str) -> None:
    """After the repair, done twice, the readers find nothing, and every invariant holds."""
    DAMAGE[damage][0](sale)
    difference = only(sale.services)

    outcomes = [repair(sale.services, difference) for _ in range(2)]
    work(sale.services)

    assert all(outcomes)
    assert [] == found(sale.services)
    assert_sound(sale.services)


def test_forgotten_claims_are_rung_for(sale: Sale) -> None:
    """They have waited for more than a minute and no bell is out; as of an earlier moment they had not."""
    sale.services.redis.delete(sale.keys.bell)
    now = sale.services.clock()

    assert [] == found(sale.services, now)
    later = now + timedelta(minutes=2)
    [difference] = differences(sale.services, later)
    repair(sale.services, difference)

    assert ("claims_forgotten", RepairName.RING_BELL) == (difference.finding_class, difference.repair)
    assert ["settle_claims"] == work(sale.services)
    assert [] == found(sale.services, later)
    assert_sound(sale.services)


def test_a_rung_bell_and_a_young_claim_are_not_forgotten(sale: Sale) -> None:
    """Whoever was rung for comes."""
    assert [] == found(sale.services, sale.services.clock() + timedelta(minutes=2))


def test_a_template_made_after_the_moment_is_not_judged(sale: Sale) -> None:
    """Whatever is wrong with it now."""
    set_counter("issued_quantity", 5)(sale)

    reading = stock_differences(sale.services, sale.services.clock() - timedelta(days=1), None, patience_s=BRIEFLY_S)

    assert (0, []) == (reading.examined, reading.differences)


def test_of_many_wrong_users_a_few_are_named(sale: Sale) -> None:
    """The first by name, and how many there are."""
    for number in range(9):
        set_taker(f"z{number}", "1 1")(sale)

    evidence = only(sale.services).evidence

    assert 9 == evidence["users"]
    assert [f"z{number}" for number in range(5)] == [each["user_id"] for each in evidence["first"]]


def test_a_gate_that_alone_knows_of_a_claim_is_not_rebuilt(sale: Sale) -> None:
    """A lost claim and a wrong stock: two roots. The rebuild that mends the one would hide the other."""
    lose_entry(sale)
    sale.services.redis.decr(sale.keys.stock)

    assert [("claim_lost", None), ("gate_stock_differs", None)] == [
        (each.finding_class, each.repair) for each in differences(sale.services)
    ]


def test_a_rebuild_that_was_proposed_before_a_claim_was_lost_is_refused(sale: Sale) -> None:
    """It would forget the claim, which nothing else knows of."""
    sale.services.redis.decr(sale.keys.stock)
    proposed = only(sale.services)
    lose_entry(sale)

    with pytest.raises(Conflict) as refusal:
        repair(sale.services, proposed)

    assert "LOST_CLAIMS" == refusal.value.code


def test_claims_that_are_issued_and_not_acknowledged_are_no_difference(sale: Sale) -> None:
    """A worker died between the commit and the acknowledgement: the bell rings again, and the books are whole."""
    write_batch(sale.services, sale.keys, "", ReadAhead(sale.services.redis, sale.keys, 10))

    assert 1 == sale.queued
    assert [] == found(sale.services)


def test_a_template_under_traffic_is_named_and_not_judged(sale: Sale) -> None:
    """Where the gate moves between every two looks nothing is said of it; the counters of the database are judged."""
    redis = sale.services.redis
    real = redis.hscan

    def moving(*args: object, **kwargs: object) -> object:
        redis.hset(sale.keys.requests, f"busy r{redis.hlen(sale.keys.requests)}", "1 issued")
        return real(*args, **kwargs)  # type: ignore[arg-type]

    redis.hscan = moving  # type: ignore[method-assign, assignment]
    try:
        reading = stock_differences(sale.services, sale.services.clock(), None, patience_s=BRIEFLY_S)
    finally:
        del redis.hscan

    assert [] == reading.differences
    assert {f"template {sale.template_id} gate", f"template {sale.template_id} takers"} == reading.unjudged
