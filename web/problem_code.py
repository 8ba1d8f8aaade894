"""Every ``code`` that a problem of ours can carry, with its status and what it says (API.md, Errors).

A view names those of its own with ``refuses``; those that come from the frame around the views (keys, bodies, headers,
stores) are added from what a view takes. The published description lists them for each operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

View = TypeVar("View", bound=Callable[..., Any])

PROBLEMS_OF_VIEW = "__problems__"


class ProblemCode(NamedTuple):
    """The status a code comes with, and what it says, for the reader of the description."""

    status: int
    meaning: str


def _with(status: int, **meanings: str) -> dict[str, ProblemCode]:
    return {code: ProblemCode(status, meaning) for code, meaning in meanings.items()}


PROBLEM_CODES: dict[str, ProblemCode] = {
    **_with(
        400,
        BAD_REQUEST="the request cannot be read",
        INCOMPLETE_BODY="the body ended before its length was reached",
        MALFORMED_FORM="the body is no form that can be read",
        MALFORMED_JSON="the body is no JSON in UTF-8, or names a member twice",
    ),
    **_with(
        401,
        INVALID_KEY="the key is not valid, or was revoked",
        INVALID_SIGNATURE="the key demands signed requests, and this is none, or an old one",
        UNAUTHENTICATED="no key was given",
    ),
    **_with(
        403,
        FORBIDDEN="the key lacks the scope, which `scopes` names",
        NOT_ELIGIBLE="the template is not for this channel",
        RISK_REJECTED="the claim looks like abuse, by the rule that `rule` names",
    ),
    **_with(
        404,
        API_KEY_NOT_FOUND="there is no such key",
        BATCH_NOT_FOUND="there is no such batch",
        CHANNEL_NOT_FOUND="no addresses are kept for this channel",
        CLAIM_NOT_FOUND="there is no such claim",
        CODE_BATCH_NOT_FOUND="there is no such batch of codes",
        CODE_INVALID="the code is wrong, used, foreign or expired",
        CODE_NOT_FOUND="no code reads so",
        CONTACT_NOT_FOUND="the user has no address for this channel",
        COUPON_NOT_FOUND="this user has no coupon of that number; another user's is as unknown",
        DAILY_CLOSE_NOT_FOUND="the day has not been closed",
        DEAD_LETTER_NOT_FOUND="there is no such dead letter, or not any more",
        DELIVERY_NOT_FOUND="this webhook has no such delivery",
        ENTRY_NOT_FOUND="it is not on this list",
        FAILURES_NOT_KEPT="the batch ended so long ago that its failures are not kept",
        FINDING_NOT_FOUND="there is no such finding",
        JOB_NOT_FOUND="there is no such job",
        NOT_FOUND="there is no such address",
        LOTTERY_NOT_FOUND="there is no such lottery",
        POLICY_NOT_FOUND="there is no such risk policy",
        REVIEW_NOT_FOUND="no such claim was held for review",
        SCORE_NOT_FOUND="nothing is known of this account",
        ORDER_NOT_FOUND="this user has no order of that number with coupons",
        RECONCILIATION_NOT_FOUND="there is no such reconciliation",
        REVOCATION_NOT_FOUND="this template has no such recall",
        STATEMENT_NOT_FOUND="no statement of that day has come",
        TEMPLATE_NOT_FOUND="there is no such template",
        WEBHOOK_NOT_FOUND="there is no such webhook",
    ),
    **_with(405, METHOD_NOT_ALLOWED="the address is not for this method"),
    **_with(
        409,
        ALREADY_DECIDED="the review has ended; `state` says how",
        ALREADY_REDEEMED="the order has been paid; `payment_no` says by what",
        ABOVE_BUDGET="it may cost more than the budget of its currency",
        ALREADY_REPLACED="another coupon, `coupon_no`, has taken its place",
        APPROVAL_CHANGED="another request came after the one that was looked at",
        APPROVAL_PENDING="the draft waits for approval: withdraw it first",
        BELOW_DRAWN="so many of the prize, `drawn`, are drawn already",
        BELOW_TAKEN="the total would be below what is issued, reserved and queued",
        BUSY="the template is being rebuilt or given away: try again",
        CHANGED="things no longer stand as they were found",
        CHANGE_PENDING="another change waits for approval: it is decided or withdrawn first",
        CODES_NOT_SET_UP="redeem codes need a pepper on every front and worker",
        COUPON_NOT_AVAILABLE="the coupon is in another state, which `coupon_status` names",
        CURRENCY_MISMATCH="the coupon is of another currency than the order",
        DAILY_LIMIT_REACHED="this user has as many as allowed today",
        DAY_NOT_CLOSED="the day was opened again, and has not been closed since",
        DAY_NOT_OVER="the day can be closed from `closable_at` on",
        ENDED="claiming has ended",
        EXPIRED="the coupon is not valid any more",
        FETCH_IN_PROGRESS="the codes are being fetched by somebody else",
        FINDING_CLOSED="the finding is decided; `state` says how",
        FINDING_OUTDATED="another amount is at stake by now: reconcile again",
        HAS_ARCHIVED="coupons of it are archived: it does not open again; clone it instead",
        HAS_OUTSTANDING="coupons of it may still be used, or are about to be issued",
        INVALID_STATUS="not in its present status, which `current_status` names",
        IN_PROGRESS="the first request with this `Idempotency-Key` is still running: ask again",
        LIMIT_REACHED="this user has as many as allowed",
        LOCKED_BY_ORDER="another order, `order_no`, holds the coupon",
        LOCKED_OTHERWISE="the order holds other coupons",
        LOCK_BROKEN="the order does not know of the lock: reconciliation frees such a coupon",
        LOCK_EXPIRED="the lock ran out, and a coupon is gone",
        LOCK_STANDS="the order, `order_no`, may still be paid until `locked_until`",
        LOTTERY_BUSY="its draws are being settled at this moment: ask again",
        LOTTERY_CHANGED="somebody changed it; `version` is that of now",
        LOST_CLAIMS="the gate alone knows of accepted claims: a rebuild would forget them",
        NOTHING_LEFT="everything of the order has been returned",
        NOTHING_PENDING="nothing waits for a decision",
        NOTHING_TO_DISCOUNT="nothing that is left to pay is in the coupon's scope",
        NOTHING_WAITS="the queue is empty",
        NOT_A_REDIS_BROKER="RabbitMQ keeps its dead letters itself",
        NOT_ENOUGH_STOCK="fewer units are left than are asked for; `available` says how many",
        NOT_PATCHABLE="these `fields` do not change any more",
        NOT_READY="the codes are still being generated",
        NOT_REDEEMED="the order is not redeemed; `order_status` says what it is",
        NOT_STARTED="not before `starts_at`",
        NOT_TRANSFERABLE="coupons of this template cannot be given away",
        NOT_YET_VALID="the coupon is not valid yet",
        NO_REPAIR="nothing is proposed for it: mend it by hand, then ignore it",
        NUMBER_TAKEN="its number belongs to something else that was done by hand",
        ORDER_BROKEN="the order does not hold its coupons: reconciliation names what is broken",
        ORDER_DIFFERS="another cart or other coupons were locked for this order",
        OVER_ISSUED="there are more coupons and units set aside than may be",
        OWN_BATCH="a batch is approved by another key than the one that made it",
        OWN_LOTTERY="a lottery is approved by another key than the one that made it",
        OWN_TEMPLATE="another key decides than the one that made, changed or asked",
        PAUSED="claiming is paused",
        POLICY_CHANGED="another version of the policy is in force",
        POLICY_IN_USE="templates name this policy",
        PEPPER_MISSING="the pepper of the batch has been taken out of the settings",
        REQUEST_REUSED="this `request_id` has exchanged another code, or made another coupon",
        SCOPE_MISMATCH="the coupon is not for what the order holds",
        SOLD_OUT="nothing is left",
        STACKING_CONFLICT="the coupons do not go together",
        TEMPLATE_NOT_ACTIVE="the template is not open; `current_status` says what it is",
        TEMPLATE_NO_TAKEN="another template has this number",
        THRESHOLD_NOT_MET="the eligible amount is below the threshold by `shortfall`",
        TYPE_NOT_OFFERED="not for coupons of this type",
        UNREADABLE="no worker can read this message; it can only be discarded",
        WEBHOOK_DISABLED="this webhook has ended",
    ),
    **_with(
        410,
        CODES_DROPPED="the batch has ended, and its codes were deleted",
        CODES_FETCHED="the codes have been fetched, and were deleted",
    ),
    **_with(413, BODY_TOO_LARGE="the body has more than `limit` bytes"),
    **_with(415, UNSUPPORTED_MEDIA_TYPE="the body is of another type than described"),
    **_with(
        422,
        CAPACITY="so many codes of this form would be easy to guess; `allowed` says how many may be made",
        IDEMPOTENCY_MISMATCH="this `Idempotency-Key` was used for another request",
        VALIDATION_FAILED="the request breaks a rule; `errors` names every field that does",
    ),
    **_with(429, RATE_LIMITED="asked too often: again after `Retry-After` seconds"),
    **_with(500, INTERNAL_ERROR="something went wrong here; the request's id leads to it in the logs"),
    **_with(
        503,
        BACKLOG_FULL="too many claims are queued: ask again",
        NOT_WARMED="the template is being made ready: ask again",
        NO_IDENTITY="no identity can be given at this moment: ask again",
        STORE_UNAVAILABLE="a store does not answer, and what it did is not known: ask again",
    ),
}


def refuses(*codes: str, as_conflict: tuple[str, ...] = ()) -> Callable[[View], View]:
    """Say with which problems of its own a view may answer. Put it below ``require``; a view without any has none.

    ``as_conflict``: codes that come with 409 here, whatever they come with elsewhere. Raises ``ValueError`` for a code
    that ``PROBLEM_CODES`` does not have.
    """
    unknown = [code for code in (*codes, *as_conflict) if code not in PROBLEM_CODES]
    if unknown:
        raise ValueError(f"put {', '.join(unknown)} into PROBLEM_CODES first")
    problems = {(PROBLEM_CODES[code].status, code) for code in codes} | {(409, code) for code in as_conflict}

    def mark(view: View) -> View:
        setattr(view, PROBLEMS_OF_VIEW, frozenset(problems))
        return view

    return mark


def problems_of(view: Callable[..., Any]) -> frozenset[tuple[int, str]]:
    """Status and code of each problem of its own that a view may answer with."""
    problems: frozenset[tuple[int, str]] = getattr(view, PROBLEMS_OF_VIEW, frozenset())
    return problems
