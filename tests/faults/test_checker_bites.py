"""The checker must bite: each guard broken on purpose, and the right letter of FAULTS.md goes red, and no other."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from coupon_workers.claiming import claim_batch, settlement
from coupon_workers.claiming.gate import Decision
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.pending import EndedClaim, acknowledge, read_pending
from coupon_workers.runtime.services import Services
from tests.support.crash import Crash
from tests.support.history_shop import HistoryShop, OpenShop, broken_script
from tests.support.template import change_template

USERS = ("ann", "bob", "cat", "dan")


def test_a_sound_sale_breaks_no_letter(open_shop: OpenShop) -> None:
    """Repeats, retries, a limit, the end of the stock."""
    shop = open_shop(per_user_limit=2)
    for user in USERS:
        for request in ("r1", "r2", "r1", "r3"):
            shop.claim(user, request)
    shop.sale.drain()
    shop.claim("ann", "r1")

    assert "" == shop.broken_letters()


def test_without_the_replay_check_one_request_has_two_claims(open_shop: OpenShop) -> None:
    """C. The database still lets only one of them act, so everything else holds."""
    shop = open_shop()
    shop.sale.gate._script = broken_script("claim", ("if stored then", "if false then"))

    for _ in range(2):
        for user in USERS[:2]:
            shop.claim(user, "r1")
    shop.sale.drain()

    assert "C" == shop.broken_letters()


def test_with_stock_and_queue_in_two_scripts_a_death_in_between_loses_a_unit(open_shop: OpenShop) -> None:
    """E. The client asks again and gets his coupon; nobody has the first unit."""
    shop = open_shop()
    shop.sale.gate._script = broken_script(
        "claim", ("redis.call('HSET', KEYS[5], request, claim_id .. ' queued')", "do return { 'ACCEPTED', now, 0 } end")
    )

    def take_and_die() -> None:
        shop.sale.claim("ann", "r1")

    def take_and_queue() -> Decision:
        decision = shop.sale.claim("ann", "r1")
        queue(shop, decision.claim_id, "ann", "r1")
        return decision

    shop.claim("ann", "r1", take_and_die)
    shop.claim("ann", "r1", take_and_queue)
    shop.sale.drain()

    assert "E" == shop.broken_letters()


def queue(shop: HistoryShop, claim_id: int, user: str, request: str) -> None:
    """What is left of the claim script when it only takes the stock."""
    client, keys = shop.sale.services.redis, shop.sale.keys
    client.hset(keys.requests, f"{user} {request}", f"{claim_id} queued")
    client.hset(keys.claims, str(claim_id), "1")
    fields = {"c": claim_id, "u": user, "r": request, "s": 2, "t": 1_800_000_000_000, "d": "", "e": 0, "h": ""}
    shop.sale.add_entry(fields)


@pytest.mark.parametrize(("dropped", "letters"), [(False, ""), (True, "C")])
def test_without_the_unique_key_of_requests_a_forgotten_request_is_issued_twice(
    open_shop: OpenShop, engine_to_break: Engine, dropped: bool, letters: str
) -> None:
    """C. With the key the second claim is rejected as the duplicate it is."""
    shop = open_shop()
    if dropped:
        with engine_to_break.begin() as connection:
            connection.execute(text("ALTER TABLE coupon DROP CONSTRAINT uq_coupon_request"))

    def claim_unheard() -> None:
        shop.sale.claim("ann", "r1")

    shop.claim("ann", "r1", claim_unheard)
    shop.sale.drain()
    shop.sale.services.redis.delete(shop.sale.keys.requests)
    shop.claim("ann", "r1")
    shop.sale.drain()
    shop.sale.preheat()

    assert letters == shop.broken_letters()


def test_acknowledged_before_the_commit_a_claim_is_lost_with_its_worker(
    open_shop: OpenShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D. The rebuild brings the unit back, and the client waits for ever."""
    shop = open_shop()
    for user in USERS:
        shop.claim(user, "r1")

    def acknowledge_and_die(point: str) -> None:
        if point == "settle.after_insert":
            acknowledge_all(shop.sale.services, shop.sale.keys)
            raise Crash(point)

    with monkeypatch.context() as patch, pytest.raises(Crash):
        for module in (claim_batch, settlement):
            patch.setattr(module, "crash_point", acknowledge_and_die)
        shop.sale.drain()
    shop.sale.drain()
    shop.sale.preheat()

    assert "D" == shop.broken_letters()


def acknowledge_all(services: Services, keys: BucketKeys) -> None:
    """Everything that is pending, as issued."""
    claims, _ = read_pending(services.redis, keys, 100)
    ended = [EndedClaim(claim, None, "") for claim in claims]
    acknowledge(services.redis, keys, ended, (claims[0].entry_id, claims[-1].entry_id))


def test_without_the_limit_at_the_gate_and_at_the_books_a_user_gets_too_many(open_shop: OpenShop) -> None:
    """B. At the gate alone it is not missed: the books reject what it let in."""
    shop = open_shop(per_user_limit=1)
    shop.sale.gate._script = broken_script("claim", ("if user_limit ~= '' and", "if false and"))
    shop.claim("ann", "r1")
    shop.claim("ann", "r2")
    shop.sale.drain()
    with_books = shop.broken_letters()

    shop.claim("ann", "r3")
    change_template(shop.sale.services.engine, shop.sale.template_id, per_user_limit=None)
    shop.sale.drain()
    change_template(shop.sale.services.engine, shop.sale.template_id, per_user_limit=1)

    assert ("", "B") == (with_books, shop.broken_letters())
