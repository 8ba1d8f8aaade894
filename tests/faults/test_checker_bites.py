"""The checker must bite: each guard broken on purpose, and the right letter of FAULTS.md goes red, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url

from coupon_workers.claiming import claim_batch, settlement
from coupon_workers.claiming.gate import Decision
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.pending import EndedClaim, acknowledge, read_pending
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.schema import Base
from coupon_workers.schema.migration import upgrade
from tests.support.crash import Crash
from tests.support.fault_post import encode, put
from tests.support.history_shop import SECRET, HistoryShop, broken_script
from tests.support.sale import open_sale
from tests.support.template import change_template

UNITS = 6
USERS = ("ann", "bob", "cat", "dan")
OpenShop = Callable[..., HistoryShop]


@pytest.fixture(scope="module")
def own_engine(settings: Settings) -> Iterator[Engine]:
    """A database of our own on the run's server: we drop its keys."""
    assert settings.database_url is not None
    url = make_url(settings.database_url.get_secret_value())
    admin = create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql("DROP DATABASE IF EXISTS bites WITH (FORCE)")
        connection.exec_driver_sql("CREATE DATABASE bites")
    engine = create_engine(url.set(database="bites"))
    upgrade(engine)
    yield engine
    engine.dispose()
    admin.dispose()


@pytest.fixture
def open_shop(
    services: Services, own_engine: Engine, redis_client: redis.Redis, settings: Settings, tmp_path: Path
) -> OpenShop:
    """Opens a sale of ``UNITS`` units in that database, with everything empty."""
    tables = ", ".join(table.name for table in Base.metadata.sorted_tables)
    with own_engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {tables} RESTART IDENTITY"))
    own = Services(settings, own_engine, redis_client, services.post, services.next_id, services.clock)
    assert settings.broker_url is not None
    broker = client_without_retries(settings.broker_url.get_secret_value(), 2_000)

    def opened(**columns: Any) -> HistoryShop:
        return HistoryShop(open_sale(own, total_quantity=UNITS, **columns), broker, tmp_path / "history.jsonl")

    return opened


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
    open_shop: OpenShop, own_engine: Engine, dropped: bool, letters: str
) -> None:
    """C. With the key the second claim is rejected as the duplicate it is."""
    shop = open_shop()
    if dropped:
        with own_engine.begin() as connection:
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


def test_a_coupon_beyond_the_total_is_seen(open_shop: OpenShop) -> None:
    """A, and E with it: a unit more than there are cannot be accounted for."""
    shop = open_shop()
    for number in range(UNITS):
        shop.claim(f"u{number}", "r1")
    shop.sale.drain()

    execute(
        shop,
        'INSERT INTO coupon SELECT (jsonb_populate_record(c, \'{"coupon_id": 4711, "claim_seq": 9,'
        ' "request_id": "r9"}\')).* FROM coupon c LIMIT 1',
        "INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator)"
        " SELECT user_id, coupon_id, 1, 'issue', 'unused', 'claim' FROM coupon WHERE coupon_id = 4711",
    )

    assert "AE" == shop.broken_letters()


def test_a_coupon_without_its_history_is_seen(open_shop: OpenShop) -> None:
    """F, whether a row is missing or tells of a step that does not exist."""
    shop = open_shop()
    shop.claim("ann", "r1")
    shop.claim("bob", "r1")
    shop.sale.drain()

    execute(shop, "DELETE FROM coupon_flow WHERE user_id = 'ann'")
    missing = shop.broken_letters()
    execute(shop, "DELETE FROM coupon WHERE user_id = 'ann'", "UPDATE coupon_template SET issued_quantity = 1")
    shop.history.path.write_text("")
    shop.sale.preheat()
    mended = shop.broken_letters()
    execute(
        shop,
        "INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, from_status, to_status, operator)"
        " SELECT user_id, coupon_id, 2, 'redeem', 'locked', 'redeemed', 'x' FROM coupon",
    )

    assert ("F", "", "F") == (missing, mended, shop.broken_letters())


def execute(shop: HistoryShop, *statements: str) -> None:
    """Do in the database what no code of ours does."""
    with shop.sale.services.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_a_message_that_somebody_took_and_forgot_is_seen(open_shop: OpenShop) -> None:
    """G."""
    shop = open_shop()
    message_id = put(shop.broker, "settle", encode("settle_claims", [1, 0], "settle"))
    queued = shop.broken_letters()

    shop.broker.lpop("dramatiq:settle")
    shop.broker.sadd("dramatiq:__acks__.nobody.settle", message_id)

    assert ("", "G") == (queued, shop.broken_letters())


@pytest.mark.parametrize(
    ("status", "answer", "headers", "letters"),
    [
        (500, {"code": "INTERNAL_ERROR"}, {}, "H"),
        (502, "<html>bad gateway</html>", {}, "H"),
        (503, {"code": "BACKLOG_FULL"}, {}, "H"),
        (503, {"code": "BACKLOG_FULL"}, {"retry-after": "1"}, ""),
        (409, {"code": "SOLD_OUT", "detail": f"key {SECRET}"}, {}, "I"),
        (409, {"code": "SOLD_OUT", "detail": "postgresql+psycopg2://postgres@/coupon"}, {}, "I"),
        (409, {"code": "SOLD_OUT", "detail": 'File "/x/y.py", line 3'}, {}, "I"),
    ],
)
def test_an_answer_no_client_may_get_is_seen(
    open_shop: OpenShop, status: int, answer: Any, headers: dict[str, str], letters: str
) -> None:
    """H for its kind, I for what it tells."""
    shop = open_shop()
    body = {"template_id": str(shop.sale.template_id), "user_id": "ann", "request_id": "r1"}

    shop.history.hears(shop.history.sends("claim", body), status, answer, headers)

    assert letters == shop.broken_letters()


@pytest.mark.parametrize(
    "line", [f"who has {SECRET}?", "Traceback (most recent call last):", "amqp://shop:secret@broker/ is away"]
)
def test_a_log_that_tells_too_much_is_seen(open_shop: OpenShop, line: str) -> None:
    """I."""
    shop = open_shop()
    shop.logs.append(f"all is well\n{line}\n")

    assert "I" == shop.broken_letters()


def test_an_accepted_claim_that_is_denied_later_is_seen(open_shop: OpenShop) -> None:
    """C when it is refused, D when it is not found."""
    shop = open_shop()
    decision = shop.claim("ann", "r1")
    shop.sale.drain()
    assert decision is not None

    shop.claim("ann", "r1", lambda: Decision(ClaimOutcome.SOLD_OUT))
    refused = shop.broken_letters()
    look = shop.history.sends("status", {"target": f"/v1/claims/{decision.claim_id}"})
    shop.history.hears(look, 404, {"code": "CLAIM_NOT_FOUND"}, {})

    assert ("C", "CD") == (refused, shop.broken_letters())
