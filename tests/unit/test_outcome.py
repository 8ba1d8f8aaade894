"""The words of the gate and of settling: their order, and whether asking again helps."""

from __future__ import annotations

from coupon_workers.claiming.outcome import ClaimOutcome, RejectionReason


def test_outcomes_stand_in_order_of_precedence() -> None:
    """DESIGN 6, step 2; what cannot be known before something else comes after it."""
    expected = (
        "REPLAYED TEMPLATE_NOT_FOUND NOT_WARMED RATE_LIMITED ENDED NOT_STARTED PAUSED NOT_ELIGIBLE LIMIT_REACHED"
        " DAILY_LIMIT_REACHED SOLD_OUT BACKLOG_FULL RISK_REJECTED ACCEPTED"
    )

    assert expected.split() == [outcome.value for outcome in ClaimOutcome]


def test_asking_again_helps_where_time_alone_may_change_the_answer() -> None:
    """And nowhere else: a client that retries a sold-out claim only makes load."""
    helps = {outcome.value for outcome in ClaimOutcome if outcome.retry_helps}

    assert {
        "NOT_WARMED",
        "RATE_LIMITED",
        "NOT_STARTED",
        "PAUSED",
        "DAILY_LIMIT_REACHED",
        "BACKLOG_FULL",
    } == helps


def test_a_reason_is_no_word_that_means_something_else_in_a_stored_answer() -> None:
    """The state of a request is "queued", "issued" or a reason."""
    assert not {"queued", "issued"} & {reason.value for reason in RejectionReason}
    assert all(reason.value == reason.name and " " not in reason for reason in RejectionReason)
