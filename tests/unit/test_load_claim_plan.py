"""The plan of a load: seeded, with the repeats and retries of real clients."""

from __future__ import annotations

from collections import Counter

import pytest

from coupon_workers.load.admin_call import AdminCall
from coupon_workers.load.claim_call import ClaimCall, ClaimKind
from coupon_workers.load.claim_plan import ClaimPlan, TemplateShare
from coupon_workers.load.demo_sale import late_claims
from coupon_workers.load.http_answer import Answer
from coupon_workers.load.pause_window import PauseWindow

SHARES = (TemplateShare("1", 9), TemplateShare("2", 1))
PLAN = ClaimPlan(
    seed=7, claims=10_000, users=3_000, templates=SHARES, repeat_share=0.1, retry_share=0.2, wrong_share=0.05
)


def test_a_plan_is_the_same_each_time() -> None:
    """One seed, one load."""
    assert list(PLAN) == list(PLAN)


def test_the_shares_of_a_plan_are_kept() -> None:
    """A fifth are retries, a tenth repeats, a twentieth wrong; the hot template has nine of ten."""
    calls = list(PLAN)

    kinds = Counter(call.kind for call in calls)
    hot = sum(call.template_id == "1" for call in calls)

    assert 10_000 == len(calls)
    assert kinds[ClaimKind.RETRY] == pytest.approx(2_000, rel=0.1)
    assert kinds[ClaimKind.REPEAT] == pytest.approx(1_000, rel=0.1)
    assert kinds[ClaimKind.WRONG] == pytest.approx(500, rel=0.2)
    assert hot == pytest.approx(9_000, rel=0.1)


def test_a_retry_is_an_earlier_request_and_a_repeat_a_new_one() -> None:
    """A retry says the same as before; a repeat is the same user's new request for the same template."""
    requests: set[tuple[str, str, str]] = set()
    takers: set[tuple[str, str]] = set()
    for call in PLAN:
        request, taker = call[:3], call[:2]
        if call.kind is ClaimKind.RETRY:
            assert request in requests
        elif call.kind is ClaimKind.REPEAT:
            assert request not in requests
            assert taker in takers
        if call.kind is not ClaimKind.WRONG:
            requests.add(request)
            takers.add(taker)


def test_the_pause_is_resumed_only_after_it_was_answered() -> None:
    """A pause whose answer is late delays the resume: it must not come after it."""
    window = PauseWindow("1", after=2, length=3)
    calls = window.among(ClaimCall("1", "u", str(number)) for number in range(12))

    seen = [next(calls) for _ in range(9)]
    pause = seen[2]
    assert isinstance(pause, AdminCall)
    window.hear(pause, Answer(200, b"{}"))
    seen += calls

    targets = [call.target if isinstance(call, AdminCall) else "claim" for call in seen]
    assert ["claim"] * 2 + ["/v1/templates/1/pause"] == targets[:3]
    assert ["claim"] * 6 + ["/v1/templates/1/resume"] == targets[3:10]
    assert 14 == len(seen)


def test_a_pause_at_the_end_is_resumed_after_it() -> None:
    """The resume that found no claim to stand before is left to be sent."""
    window = PauseWindow("1", after=1, length=9)
    calls = list(window.among(ClaimCall("1", "u", str(number)) for number in range(3)))
    pause = calls[1]
    assert isinstance(pause, AdminCall)

    window.hear(pause, Answer(200, b"{}"))

    assert ["/v1/templates/1/resume"] == [call.target for call in window.last_calls]


def test_units_that_came_back_late_have_each_a_user_of_their_own() -> None:
    """Who is none of the load's, and has not claimed before."""
    calls = late_claims("1", 3)

    assert 3 == len({call.user_id for call in calls}) == len({call.request_id for call in calls})
    assert set() == {call[:2] for call in calls} & {call[:2] for call in PLAN}
    assert [] == late_claims("1", 0)
