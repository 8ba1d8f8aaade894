"""The life of a coupon: table, drawing, the database's words and the checker's moves agree."""

from __future__ import annotations

import re
from collections import deque
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import CheckConstraint, Table

from coupon_workers.checking.coupon_transition import TRANSITIONS as CHECKED_MOVES
from coupon_workers.coupons.transition import TRANSITIONS, CouponStatus, FlowAction, Transition, leaves, reaches, replay
from coupon_workers.schema.coupon import COUPON_STATUSES, Coupon
from coupon_workers.schema.coupon_flow import FLOW_ACTIONS, CouponFlow

PAGE = (Path(__file__).parents[2] / "docs" / "states.md").read_text(encoding="utf-8")
ISSUED = ("issue", None, "unused")


def drawn_moves() -> list[tuple[str, str | None, str]]:
    """The arrows of the drawing, in their order."""
    drawing = PAGE.split("```mermaid\nstateDiagram-v2\n", 1)[1].split("```", 1)[0]
    arrows = [re.fullmatch(r" {4}(\S+) --> (\w+) : (\w+)", line) for line in drawing.splitlines()]
    assert all(arrows)
    return [(arrow[3], None if arrow[1] == "[*]" else arrow[1], arrow[2]) for arrow in arrows if arrow]


def words_checked(table: Table, column: str) -> set[str]:
    """The words that the table's CHECK allows in a column."""
    checks = [str(check.sqltext) for check in table.constraints if isinstance(check, CheckConstraint)]
    [listed] = [check for check in checks if check.startswith(f"{column} IN (")]
    return set(re.findall(r"'(\w+)'", listed))


def test_the_drawing_shows_the_table() -> None:
    """Arrow by arrow."""
    assert [tuple(move) for move in TRANSITIONS] == drawn_moves()


def test_the_page_explains_every_action() -> None:
    """A row each, in the order of the table."""
    explained = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)

    assert list(FlowAction) == explained


def test_the_words_are_those_of_the_database() -> None:
    """The schema's lists, and the CHECKs that are made of them."""
    assert COUPON_STATUSES == tuple(CouponStatus)
    assert FLOW_ACTIONS == tuple(FlowAction)
    flow, statuses = CouponFlow.metadata.tables["coupon_flow"], set(CouponStatus)
    assert statuses == words_checked(Coupon.metadata.tables["coupon"], "status")
    assert statuses == words_checked(flow, "from_status")
    assert statuses == words_checked(flow, "to_status")
    assert set(FlowAction) == words_checked(flow, "action")


def test_the_checker_knows_the_same_moves() -> None:
    """Though it has them from nobody."""
    assert CHECKED_MOVES == {tuple(move) for move in TRANSITIONS}


def test_every_word_is_in_the_table_and_every_move_once() -> None:
    """No status that nothing reaches, no action that moves nothing, no move said twice."""
    assert set(FlowAction) == {move.action for move in TRANSITIONS}
    assert set(CouponStatus) == {move.after for move in TRANSITIONS}
    assert len(TRANSITIONS) == len(set(TRANSITIONS))


def test_only_the_issue_makes_a_coupon() -> None:
    """And it makes nothing but unused ones."""
    assert [Transition(FlowAction.ISSUE, None, CouponStatus.UNUSED)] == [m for m in TRANSITIONS if m.before is None]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("issue", set()),
        ("lock", {"unused"}),
        ("redeem", {"locked", "unused"}),
        ("release", {"locked"}),
        ("refund", {"redeemed"}),
        ("expire", {"unused"}),
        ("revoke", {"unused"}),
        ("transfer", {"unused"}),
    ],
)
def test_an_action_leaves_what_its_update_names(action: str, expected: set[str]) -> None:
    """Nothing expires, is recalled or given away while an order holds it."""
    assert expected == leaves(FlowAction(action))


@pytest.mark.parametrize("final", ["expired", "revoked", "transferred"])
def test_nothing_leaves_a_final_status(final: str) -> None:
    """They end the coupon."""
    assert set() == {action for action in FlowAction if CouponStatus(final) in leaves(action)}


def test_only_a_refund_has_two_ends() -> None:
    """Any other action says where it leads."""
    pairs = product(FlowAction, (None, *CouponStatus))

    forks = {(action, before): reaches(action, before) for action, before in pairs if len(reaches(action, before)) > 1}

    assert {("refund", "redeemed"): {"unused", "expired"}} == forks


def test_a_flow_is_replayed_to_its_status() -> None:
    """Locked, released, locked again, redeemed, returned."""
    flow = [
        ISSUED,
        ("lock", "unused", "locked"),
        ("release", "locked", "unused"),
        ("lock", "unused", "locked"),
        ("redeem", "locked", "redeemed"),
        ("refund", "redeemed", "unused"),
    ]

    assert [CouponStatus.LOCKED, CouponStatus.UNUSED] == [replay(flow[:4]), replay(flow)]


@pytest.mark.parametrize(
    ("flow", "row"),
    [
        ([("lock", "unused", "locked")], 1),
        ([ISSUED, ISSUED], 2),
        ([ISSUED, ("redeem", "locked", "redeemed")], 2),
        ([ISSUED, ("lock", "unused", "redeemed")], 2),
        ([ISSUED, ("expire", "unused", "expired"), ("refund", "redeemed", "unused")], 3),
        ([ISSUED, ("steal", "unused", "locked")], 2),
    ],
)
def test_a_flow_that_breaks_off_is_refused_at_its_row(flow: list[tuple[str, str | None, str]], row: int) -> None:
    """A move that is not in the table, or not from where the coupon was."""
    with pytest.raises(ValueError, match=f"row {row} of the flow"):
        replay(flow)


def test_a_coupon_without_a_flow_is_refused() -> None:
    """Whoever issued it wrote a row."""
    with pytest.raises(ValueError, match="one row at least"):
        replay([])


@given(st.data())
def test_any_walk_along_the_table_is_replayed_to_its_end(data: st.DataObject) -> None:
    """And is not, when one row in the middle is left out and the ends do not meet."""
    walk: list[Transition] = [TRANSITIONS[0]]
    for _ in range(data.draw(st.integers(0, 8))):
        ahead = [move for move in TRANSITIONS if move.before == walk[-1].after]
        if ahead:
            walk.append(data.draw(st.sampled_from(ahead)))

    assert walk[-1].after == replay(walk)
    for gap in range(1, len(walk) - 1):
        if walk[gap].before != walk[gap].after:
            with pytest.raises(ValueError, match=f"row {gap + 1}"):
                replay([*walk[:gap], *walk[gap + 1 :]])


def test_every_status_can_be_reached() -> None:
    """From nothing, by the table alone."""
    reached: set[CouponStatus | None] = {None}
    ahead = deque(reached)
    while ahead:
        at = ahead.popleft()
        for move in TRANSITIONS:
            if move.before == at and move.after not in reached:
                reached.add(move.after)
                ahead.append(move.after)

    assert {None, *CouponStatus} == reached
