"""The checker bites on codes: their books are broken on purpose, and exactly what was broken is reported."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from sqlalchemy import text

from coupon_workers.checking.report import check_all
from coupon_workers.codes import exchange
from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.runtime.services import Services
from tests.support.code_batch import CodeDesk, hand_out_codes, plan_codes
from tests.support.sale import Sale, open_sale

BRIEFLY_S = 0.3


@dataclass
class Scene:
    """Batches in every state, with codes used by four users."""

    sale: Sale
    done: CodeDesk

    def sql(self, statement: str) -> None:
        """Change the database behind everyone's back."""
        with self.sale.services.engine.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text(statement), {"done": self.done.code_batch_id} if ":done" in statement else {})

    def broken(self) -> set[str]:
        """The names of the invariants that do not hold."""
        return {breach.invariant for breach in check_all(self.sale.services, patience_s=BRIEFLY_S).breaches}


@pytest.fixture
def scene(services: Services) -> Scene:
    """One batch done, one revoked, one still to be generated, one with its texts kept."""
    sale = open_sale(services, total_quantity=60)
    done, revoked = hand_out_codes(sale, 10), hand_out_codes(sale, 10)
    plan_codes(sale, 5)
    plan_codes(sale, 5).generate(chunk=2)
    for n in range(3):
        done.exchange(done.codes[n], f"u-{n}")
    revoked.exchange(revoked.codes[0], "u-3")
    revoke_code_batch(services, revoked.code_batch_id, "key-1")
    return Scene(sale, done)


def test_batches_of_codes_in_every_state_break_no_rule(scene: Scene) -> None:
    """And are counted among the facts."""
    report = check_all(scene.sale.services, patience_s=BRIEFLY_S)

    assert report.holds, report.breaches
    assert (4, 25, 4) == tuple(report.facts[name] for name in ("code_batches", "codes", "used_codes"))


BREAKS: dict[str, tuple[str, set[str]]] = {
    "a code is lost": (
        "DELETE FROM code WHERE code_batch_id = :done AND use_no IS NULL"
        " AND code_hash = (SELECT min(code_hash) FROM code WHERE code_batch_id = :done AND use_no IS NULL)",
        {"code_books"},
    ),
    "a used code is as new": (
        "UPDATE code SET use_no = NULL, user_id = NULL, request_id = NULL, coupon_id = NULL, used_at = NULL"
        " WHERE code_batch_id = :done AND use_no = 2",
        {"code_books"},
    ),
    "a use has another number": (
        "UPDATE code SET use_no = 9 WHERE code_batch_id = :done AND use_no = 3",
        {"code_books"},
    ),
    "a used code is another user's": (
        "UPDATE code SET user_id = 'thief' WHERE code_batch_id = :done AND use_no = 1",
        {"code_books"},
    ),
    "a used code has another coupon": (
        "UPDATE code SET coupon_id = 1 WHERE code_batch_id = :done AND use_no = 1",
        {"code_books"},
    ),
    "a coupon is of another batch of codes": (
        "UPDATE coupon SET batch_no = '12' WHERE batch_no = CAST(:done AS text) AND user_id = 'u-1'",
        {"code_books"},
    ),
    "units were given back twice": (
        "UPDATE coupon_template SET reserved_quantity = reserved_quantity - 1, version = version + 1",
        {"batch_books", "conservation"},
    ),
    "an issued unit is not granted": (
        "UPDATE coupon_template SET granted_quantity = granted_quantity - 1",
        {"batch_books"},
    ),
    "a plain text is lost": (
        "DELETE FROM code_export_part WHERE part_no = 2",
        {"code_books"},
    ),
    "a plain text outlives its fetching": (
        "INSERT INTO code_export_part VALUES (:done, 1, 'K7WX')",
        {"code_books"},
    ),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_what_is_broken_is_reported(scene: Scene, broken: str) -> None:
    """By the rule that speaks of it, and by no other."""
    statement, rules = BREAKS[broken]

    scene.sql(statement)

    assert rules == scene.broken()


WORSE = {
    "the guard that a code is unused": (" AND code.user_id IS NULL", ""),
    "the units that codes hold": ("reserved_quantity = reserved_quantity - 1,", ""),
    "the count of its batch": ("used_count = used_count + 1, left_quantity = left_quantity - 1,", ""),
}


@pytest.mark.parametrize("guard", WORSE)
def test_an_exchange_without_one_of_its_guards_goes_red(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    """The first guard is behind another one, which goes with it: two users have one code then."""
    old, new = WORSE[guard]
    assert old in exchange.USE.text
    monkeypatch.setattr(exchange, "USE", text(exchange.USE.text.replace(old, new)))
    monkeypatch.setattr(exchange, "_judge", lambda code, wish, now: None)
    scene.sql("DROP INDEX uq_code_use")
    try:
        scene.done.exchange(scene.done.codes[0 if "unused" in guard else 5], "u-9", "r9")

        assert scene.broken() >= {"code_books" if "units" not in guard else "batch_books"}
    finally:
        scene.sql("TRUNCATE code")
        scene.sql("CREATE UNIQUE INDEX uq_code_use ON code (code_batch_id, use_no) WHERE use_no IS NOT NULL")


def test_a_front_that_never_counts_is_found_out(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate would let a user claim beyond his limit."""
    monkeypatch.setattr(exchange, "count_uses", lambda *arguments: None)

    scene.done.exchange(scene.done.codes[5], "u-9", "r9")

    assert {"taker_count"} == scene.broken()
