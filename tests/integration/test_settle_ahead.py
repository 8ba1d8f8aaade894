"""A batch that was read ahead: written as if it were read in its turn, whatever came between (DESIGN 3)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coupon_workers.claiming import claim_batch, read_ahead, settlement
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.pending import Entries
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.errors import Conflict, StoreUnavailable
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import pause_template, resume_template
from tests.support.crash import dies_at
from tests.support.lost_commit import commit_lost
from tests.support.redis_dump import restore, snapshot
from tests.support.sale import Sale, assert_sound, open_sale

BATCH = 3
BESIDE = "beside-drain"
PATIENCE_S = 10.0
POINTS = (
    "settle.before_insert",
    "settle.after_read_ahead",
    "settle.after_insert",
    "settle.after_commit",
    "settle.after_acknowledge",
)


@pytest.fixture
def small(services: Services) -> Services:
    """Services that settle three claims in a transaction at most."""
    return replace(services, settings=services.settings.model_copy(update={"settle_batch": BATCH}))


@pytest.fixture
def sale(small: Services) -> Sale:
    """Twenty units, one a user."""
    return open_sale(small, total_quantity=20, per_user_limit=1)


def users(count: int) -> list[str]:
    """So many."""
    return [f"u{number}" for number in range(count)]


def before_turn(monkeypatch: pytest.MonkeyPatch, nth: int, act: Callable[[], object]) -> None:
    """Do something right before a drain takes its turn for the ``nth`` batch; the batch before it is acknowledged, and
    the ``nth`` is read ahead by then."""
    taken, lock, finish = 0, claim_batch.lock_template, settlement._finish
    finished = threading.Semaphore(0)

    def lock_template(*arguments: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken == nth:
            for _ in range(nth - 1):
                assert finished.acquire(timeout=PATIENCE_S)
            act()
        return lock(*arguments)

    def finish_batch(*arguments: Any) -> None:
        finish(*arguments)
        finished.release()

    monkeypatch.setattr(claim_batch, "lock_template", lock_template)
    monkeypatch.setattr(settlement, "_finish", finish_batch)


def beside() -> list[str]:
    """Threads that drains have beside them."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(BESIDE)]


def test_the_next_batch_is_read_while_one_is_written(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is not inserted before the second was read, by another thread."""
    claim_ids = sale.claim_each(users(8))
    was_read = threading.Event()

    def crash_point(name: str) -> None:
        if name == "settle.before_insert":
            assert was_read.wait(PATIENCE_S)

    monkeypatch.setattr(claim_batch, "crash_point", crash_point)
    monkeypatch.setattr(read_ahead, "crash_point", lambda name: was_read.set())

    assert 8 == sale.drain()
    assert set(claim_ids) == sale.coupons().keys()
    assert [] == beside()
    assert_sound(sale.services)


def test_a_quiet_drain_has_no_thread_beside_it(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim alone waits for none to start."""
    sale.claim("ann")
    seen: list[str] = []
    for module in (claim_batch, settlement):
        monkeypatch.setattr(module, "crash_point", lambda name: seen.extend(beside()))

    assert 1 == sale.drain()
    assert [] == seen


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_worker_that_dies_at_any_pass_of_a_point_loses_no_claim_and_doubles_none(
    sale: Sale, monkeypatch: pytest.MonkeyPatch, point: str, nth: int
) -> None:
    """Over the first of four batches, one amid the others, or the last full one."""
    claim_ids = sale.claim_each(users(10))
    with dies_at(monkeypatch, point, nth):
        sale.drain()
    left = beside()

    sale.drain()

    assert [] == left
    assert set(claim_ids) == sale.coupons().keys()
    assert (10, 0, 10) == (sale.stock, sale.queued, len(sale.rows("SELECT 1 FROM coupon_flow")))
    assert_sound(sale.services)


def test_a_pause_after_the_reading_rejects_what_was_read(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """The template's state is that of the transaction that writes."""
    claim_ids = sale.claim_each(users(6))
    before_turn(monkeypatch, 2, lambda: pause_template(sale.services, sale.template_id))

    sale.drain()

    assert set(claim_ids[:3]) == sale.coupons().keys()
    assert dict.fromkeys(claim_ids[3:], "PAUSED") == sale.rejections()
    assert_sound(sale.services)


def test_what_another_drain_has_settled_is_not_written_again(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """It came between two turns, and left nothing of what was read ahead."""
    claim_ids = sale.claim_each(users(9))
    before_turn(monkeypatch, 2, sale.drain)

    sale.drain()

    assert set(claim_ids) == sale.coupons().keys()
    assert (11, 9) == (sale.stock, len(sale.rows("SELECT 1 FROM outbox")))
    assert_sound(sale.services)


def test_what_a_redis_has_forgotten_since_the_reading_is_not_issued(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its gate was rebuilt without those claims, and sells their units again."""
    claim_ids = sale.claim_each(users(9))

    def forget() -> None:
        sale.services.redis.flushdb()
        sale.preheat()

    before_turn(monkeypatch, 2, forget)
    sale.drain()

    assert set(claim_ids[:3]) == sale.coupons().keys()
    assert 17 == sale.stock
    assert_sound(sale.services)


def test_what_a_rewound_redis_has_not_accepted_yet_is_not_issued(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the batch that was read ahead is there again: only that is written, and the rest was never accepted."""
    claim_ids = sale.claim_each(users(5))
    before = snapshot(sale.services.redis)
    sale.claim_each(users(9)[5:])

    def rewind() -> None:
        restore(sale.services.redis, before)
        sale.preheat()

    before_turn(monkeypatch, 2, rewind)
    sale.drain()

    assert set(claim_ids) == sale.coupons().keys()
    assert (15, 0) == (sale.stock, sale.queued)
    assert_sound(sale.services)


def test_a_redis_that_fails_while_reading_ahead_ends_the_drain_cleanly(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was committed is acknowledged, no thread is left, and the next drain settles the rest."""
    claim_ids = sale.claim_each(users(8))
    reading = read_ahead.read_pending

    def read_pending(*arguments: Any) -> Entries:
        if threading.current_thread().name.startswith(BESIDE):
            raise StoreUnavailable("Redis", "the server closed the connection")
        return reading(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(read_ahead, "read_pending", read_pending)
        with pytest.raises(StoreUnavailable):
            sale.drain()
    left = (set(sale.coupons()), sale.queued, beside())

    assert (set(claim_ids[:3]), 5, []) == left
    assert 5 == sale.drain()
    assert_sound(sale.services)


def test_a_commit_that_fails_leaves_what_was_read_ahead_to_the_next_drain(sale: Sale) -> None:
    """The batch before it is acknowledged all the same."""
    claim_ids = sale.claim_each(users(8))
    with commit_lost(sale.services.engine, nth=2), pytest.raises(StoreUnavailable):
        sale.drain()
    left = (set(sale.coupons()), sale.queued, beside())

    assert (set(claim_ids[:3]), 5, []) == left
    assert 5 == sale.drain()
    assert_sound(sale.services)


MEANWHILE = ("drain", "preheat", "pause", "resume", "claim", "forget", "nothing")


@given(claims=st.integers(4, 16), acts=st.lists(st.sampled_from(MEANWHILE), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_whatever_comes_between_the_batches_every_book_is_exact(small: Services, claims: int, acts: list[str]) -> None:
    """Acts of others before each turn of a drain; then the gate is rebuilt and all is brought to its end."""
    small.redis.flushdb()
    sale = open_sale(small, total_quantity=12, per_user_limit=1, template_id=int(small.next_id(0)))
    decisions = [sale.claim(user) for user in users(claims)]
    accepted = {each.claim_id for each in decisions if each.outcome is ClaimOutcome.ACCEPTED}
    left = list(acts)
    do: dict[str, Callable[[], object]] = {
        "drain": sale.drain,
        "preheat": sale.preheat,
        "pause": lambda: pause_template(small, sale.template_id),
        "resume": lambda: resume_template(small, sale.template_id),
        "claim": lambda: sale.claim(f"late{len(left)}"),
        "forget": lambda: (small.redis.flushdb(), preheat_template(small, sale.template_id)),
        "nothing": lambda: None,
    }
    lock = claim_batch.lock_template

    def lock_template(*arguments: Any) -> Any:
        if left:
            act = left.pop(0)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(claim_batch, "lock_template", lock)
                with suppress(Conflict):  # of a pause of what is paused
                    do[act]()
        return lock(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim_batch, "lock_template", lock_template)
        sale.drain()
    sale.preheat()
    sale.drain()

    ended = sale.coupons().keys() | sale.rejections().keys()
    assert "forget" in acts or accepted <= ended
    assert (0, []) == (sale.queued, beside())
    assert_sound(small)
