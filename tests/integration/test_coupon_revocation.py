"""Recalling coupons: each once, its unit back or not, under claims and after any crash."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.checking.report import check_all
from coupon_workers.claiming import claim_batch
from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate import ClaimGate
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.coupons.revocation import ask_revocation, perform_revocation, sweep_revocations
from coupon_workers.coupons.revocation_reading import RevocationAnswer, read_revocation
from coupon_workers.coupons.single_revocation import revoke_coupon
from coupon_workers.errors import Conflict, NotFound, StoreUnavailable
from coupon_workers.runtime.services import Services
from tests.conftest import PostBox
from tests.support.crash import dies_at
from tests.support.gift import give
from tests.support.template import insert_template, read_template


class Recall:
    """A published template whose coupons are recalled; the test plays the worker."""

    def __init__(self, services: Services, **changed: Any) -> None:
        self.services = services
        self.template_id = insert_template(services.engine, **{"restock_on_revoke": True, **changed})
        self.gate = ClaimGate(services.settings, services.next_id)
        preheat_template(services, self.template_id)

    def claim(self, *users: str) -> Counter[ClaimOutcome]:
        """A claim by each user, decided by the gate."""
        requests = (ClaimRequest(self.template_id, user, f"r-{user}") for user in users)
        return Counter(self.gate.claim(request).outcome for request in requests)

    def issue(self, *users: str) -> None:
        """Claimed and settled."""
        self.claim(*users)
        drain(self.services, self.template_id, 0)

    def ask(self) -> int:
        """A new recall."""
        asked = ask_revocation(self.services, self.template_id, self.services.next_id(0), "wrong amount", "key-1")
        return int(asked["revocation_id"])

    def perform(self, chunk: int = 3) -> RevocationAnswer:
        """A recall, from beginning to end."""
        revocation_id = self.ask()
        perform_revocation(self.services, revocation_id, chunk=chunk)
        return self.read(revocation_id)

    def read(self, revocation_id: int) -> RevocationAnswer:
        """How it stands."""
        return read_revocation(self.services, self.template_id, revocation_id)

    def books(self) -> tuple[int, int]:
        """Units issued, and units that went back."""
        row = read_template(self.services.engine, self.template_id)
        return row["issued_quantity"], row["restocked_quantity"]

    def execute(self, statement: str, **named: Any) -> Any:
        """Something that happened before."""
        with self.services.engine.begin() as connection:
            return connection.execute(text(statement), named)

    def assert_sound(self) -> None:
        """Every invariant holds."""
        assert [] == check_all(self.services, patience_s=0).breaches


def users(first: int, last: int) -> list[str]:
    """``u1`` to ``u9``."""
    return [f"u{number}" for number in range(first, last + 1)]


def test_units_go_back_and_others_claim_them(services: Services) -> None:
    """A sold-out template has its stock again; those who had a coupon have had their turn."""
    recall = Recall(services, total_quantity=7, per_user_limit=1)
    recall.issue(*users(1, 7))

    ended = recall.perform()

    assert ("done", 7, 7, 0) == (ended.status, ended.revoked, ended.restocked, ended.locked)
    assert (0, 7) == recall.books()
    recall.assert_sound()
    assert {ClaimOutcome.REPLAYED: 1} == recall.claim("u1")
    recall.issue(*users(11, 18))
    assert (7, 7) == recall.books()
    recall.assert_sound()


def test_without_the_switch_nothing_goes_back(services: Services) -> None:
    """The units are spent."""
    recall = Recall(services, total_quantity=3, restock_on_revoke=False)
    recall.issue(*users(1, 3))

    ended = recall.perform()

    assert (3, 0) == (ended.revoked, ended.restocked)
    assert (3, 0) == recall.books()
    assert {ClaimOutcome.SOLD_OUT: 1} == recall.claim("u9")
    recall.assert_sound()


def test_a_preheat_after_a_recall_finds_the_same_stock(services: Services) -> None:
    """The gate's books can be rebuilt from the rows."""
    recall = Recall(services, total_quantity=5)
    recall.issue(*users(1, 4))
    recall.perform()

    preheat_template(services, recall.template_id)

    recall.assert_sound()
    assert {ClaimOutcome.ACCEPTED: 5, ClaimOutcome.SOLD_OUT: 1} == recall.claim(*users(11, 16))


def test_a_locked_coupon_is_left_and_told(services: Services) -> None:
    """So is one that is over."""
    recall = Recall(services)
    recall.issue(*users(1, 4))
    recall.execute("UPDATE coupon SET valid_to = now() WHERE user_id = 'u2'")
    recall.execute("UPDATE coupon SET status = 'locked', order_no = 'o1' WHERE user_id = 'u1'")

    ended = recall.perform()

    assert (2, 2, 1) == (ended.revoked, ended.restocked, ended.locked)
    statuses = recall.execute("SELECT status FROM coupon ORDER BY user_id").scalars().all()
    assert ["locked", "unused", "revoked", "revoked"] == statuses


def test_what_is_claimed_after_the_recall_was_asked_for_stays(services: Services) -> None:
    """It ends, though its own units are claimed again all the while."""
    recall = Recall(services, total_quantity=4)
    recall.issue(*users(1, 4))
    revocation_id = recall.ask()
    perform_revocation(services, revocation_id, turn_s=0, chunk=2)
    recall.issue(*users(11, 12))

    perform_revocation(services, revocation_id, chunk=2)

    assert ("done", 4) == (recall.read(revocation_id).status, recall.read(revocation_id).revoked)
    assert (2, 4) == recall.books()
    recall.assert_sound()


def test_a_claim_that_is_being_settled_when_it_is_asked_for_is_met(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its coupon counts as issued before, though it is seen after: the recall does not end without it."""
    recall = Recall(services)
    recall.claim("ann")
    asked: list[int] = []

    def ask_amid(name: str) -> None:
        if name == "settle.after_insert":
            asked.append(recall.ask())
            with pytest.raises(StoreUnavailable, match="busy"):
                perform_revocation(services, asked[0])

    with monkeypatch.context() as patch:
        patch.setattr(claim_batch, "crash_point", ask_amid)
        drain(services, recall.template_id, 0)
    perform_revocation(services, asked[0])

    assert ("done", 1) == (recall.read(asked[0]).status, recall.read(asked[0]).revoked)
    recall.assert_sound()


def test_what_was_given_on_counts_as_of_the_day_it_was_issued(services: Services) -> None:
    """Old coupons are met in any hand they were given into; a new one stays with whoever was given it."""
    recall = Recall(services, transferable=True)
    recall.issue("old", "kept")
    revocation_id = recall.ask()
    recall.issue("new")
    for first in ("old", "new"):
        given = give(services, first, _coupon(recall, first), f"{first}-friend")
        give(services, f"{first}-friend", given, f"{first}-mother")

    perform_revocation(services, revocation_id, chunk=2)

    held = recall.execute("SELECT user_id, status FROM coupon WHERE status <> 'transferred' ORDER BY user_id").all()
    assert [("kept", "revoked"), ("new-mother", "unused"), ("old-mother", "revoked")] == held
    assert ("done", 2) == (recall.read(revocation_id).status, recall.read(revocation_id).revoked)
    recall.assert_sound()


def test_claims_and_recalls_at_once_keep_the_books(services: Services) -> None:
    """Several workers at the same recall, claims, settling and a preheat beside them."""
    recall = Recall(services, total_quantity=200)
    recall.issue(*users(1, 200))
    revocation_id = recall.ask()

    def sell(seller: int) -> None:
        for number in range(60):
            recall.claim(f"s{seller}-{number}")
            drain(services, recall.template_id, 0)

    with ThreadPoolExecutor(6) as pool:
        work = [pool.submit(perform_revocation, services, revocation_id, chunk=7) for _ in range(3)]
        work += [pool.submit(sell, seller) for seller in range(2)]
        work.append(pool.submit(preheat_template, services, recall.template_id))  # type: ignore[arg-type]  # its count is of no interest
        for each in work:
            each.result()
    drain(services, recall.template_id, 0)

    ended = recall.read(revocation_id)
    assert ("done", 200, 200) == (ended.status, ended.revoked, ended.restocked)
    recall.assert_sound()


def test_a_recall_that_runs_is_answered_and_no_other_begins(services: Services, post: PostBox) -> None:
    """Asked twice, it is one; when it is through, another may be asked for."""
    recall = Recall(services)
    recall.issue("u1")

    first, second = recall.ask(), recall.ask()
    perform_revocation(services, first)

    assert first == second
    assert first != recall.ask()
    assert "revoke_coupons" in {task.name for task in post.sent}


def test_the_sweep_sends_a_forgotten_recall_again(services: Services, post: PostBox) -> None:
    """Its message was lost; one that goes on is left alone."""
    recall = Recall(services)
    revocation_id = recall.ask()
    post.sent.clear()

    early = sweep_revocations(services, services.clock() - timedelta(minutes=1))
    late = sweep_revocations(services, services.clock() + timedelta(minutes=1))

    assert (0, 1) == (early, late)
    assert [("revoke_coupons", (revocation_id,))] == [(task.name, task.args) for task in post.sent]


def test_a_coupon_in_anothers_hand_is_met_in_the_next_turn(services: Services) -> None:
    """Nobody is waited for, and nothing is forgotten."""
    recall = Recall(services)
    recall.issue("u1", "u2")
    revocation_id = recall.ask()

    with services.engine.begin() as other:
        other.execute(text("SELECT FROM coupon WHERE user_id = 'u1' FOR UPDATE"))
        perform_revocation(services, revocation_id)
        meanwhile = recall.read(revocation_id)
    perform_revocation(services, revocation_id)

    assert ("running", 1) == (meanwhile.status, meanwhile.revoked)
    assert ("done", 2) == (recall.read(revocation_id).status, recall.read(revocation_id).revoked)
    recall.assert_sound()


def test_a_template_that_is_not_there_has_nothing_to_recall(services: Services) -> None:
    """Nor is a recall found under another template."""
    recall = Recall(services)

    with pytest.raises(NotFound, match="template"):
        ask_revocation(services, 1, services.next_id(0), "x", "key-1")
    with pytest.raises(NotFound, match="recall"):
        read_revocation(services, 1, recall.ask())


def _coupon(recall: Recall, user: str) -> int:
    coupon_id: int = recall.execute("SELECT coupon_id FROM coupon WHERE user_id = :user", user=user).scalar_one()
    return coupon_id


def test_one_coupon_is_revoked_once(services: Services) -> None:
    """Asked again, and by two at once, its unit goes back once; its history and the log tell of it once."""
    recall = Recall(services, total_quantity=1)
    recall.issue("ann")
    coupon_id = _coupon(recall, "ann")

    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(revoke_coupon, services, "ann", coupon_id, "by mistake", f"key-{number}") for number in range(4)
        ]
        for each in asked:
            each.result()

    assert (0, 1) == recall.books()
    actions = recall.execute("SELECT action FROM coupon_flow ORDER BY flow_no").scalars().all()
    told = recall.execute("SELECT event FROM outbox ORDER BY outbox_id").scalars().all()
    logged = recall.execute("SELECT after ->> 'reason' FROM audit_log WHERE action = 'coupon.revoke'").scalars().all()
    assert (["issue", "revoke"], ["coupon.issued", "coupon.revoked"], ["by mistake"]) == (actions, told, logged)
    assert {ClaimOutcome.ACCEPTED: 1} == recall.claim("bob")


@pytest.mark.parametrize(
    ("change", "code", "evidence"),
    [
        ("status = 'locked', order_no = 'o1'", "COUPON_NOT_AVAILABLE", {"coupon_status": "locked", "order_no": "o1"}),
        ("status = 'redeemed', order_no = 'o1'", "COUPON_NOT_AVAILABLE", {"coupon_status": "redeemed"}),
        ("status = 'transferred'", "COUPON_NOT_AVAILABLE", {"coupon_status": "transferred"}),
        ("status = 'expired'", "EXPIRED", {}),
        ("valid_to = now()", "EXPIRED", {}),
    ],
)
def test_a_coupon_that_is_not_unused_is_not_revoked(
    services: Services, change: str, code: str, evidence: dict[str, str]
) -> None:
    """The refusal says why; the books stay."""
    recall = Recall(services)
    recall.issue("ann")
    recall.execute(f"UPDATE coupon SET {change}")

    with pytest.raises(Conflict) as refusal:
        revoke_coupon(services, "ann", _coupon(recall, "ann"), "x", "key-1")

    assert (code, evidence) == (refusal.value.code, refusal.value.evidence)
    assert (1, 0) == recall.books()


def test_anothers_coupon_is_not_found(services: Services) -> None:
    """Like one that does not exist."""
    recall = Recall(services)
    recall.issue("ann")

    with pytest.raises(NotFound):
        revoke_coupon(services, "bob", _coupon(recall, "ann"), "x", "key-1")


@pytest.mark.parametrize("point", ["revoke.before_commit", "revoke.after_commit"])
def test_a_recall_that_dies_goes_on_where_it_stopped(
    services: Services, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Each coupon is revoked once, and its unit goes back once; the sweep of the gates brings what Redis missed."""
    recall = Recall(services, total_quantity=5)
    recall.issue(*users(1, 5))
    revocation_id = recall.ask()

    for _ in range(3):
        with dies_at(monkeypatch, point):
            perform_revocation(services, revocation_id, chunk=1)
    perform_revocation(services, revocation_id, chunk=1)
    sync_template(services, recall.template_id)

    assert ("done", 5, 5) == tuple(
        getattr(recall.read(revocation_id), name) for name in ("status", "revoked", "restocked")
    )
    assert (0, 5) == recall.books()
    recall.assert_sound()
