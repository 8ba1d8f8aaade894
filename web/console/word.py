"""The core's words, which programs compare, as people read them; with the colour of a status."""

from __future__ import annotations

from coupon_workers.errors import (
    Conflict,
    CouponWorkersError,
    Gone,
    InvalidInput,
    NotFound,
    StoreUnavailable,
    TooManyTries,
)
from web.console.batch_word import BATCH_REASONS, BATCH_TONES, BATCH_WORDS
from web.console.field_label import label_of
from web.console.field_word import field_word
from web.console.finding_word import FINDING_REASONS, FINDING_TONES, FINDING_WORDS
from web.console.language import N_, gettext
from web.console.lottery_word import LOTTERY_REASONS, LOTTERY_TONES, LOTTERY_WORDS
from web.console.risk_word import RISK_REASONS, RISK_TONES, RISK_WORDS

WORDS = {
    "draft": N_("draft"),
    "pending_approval": N_("waits for approval"),
    "scheduled": N_("scheduled"),
    "active": N_("active"),
    "paused": N_("paused"),
    "ended": N_("ended"),
    "offline": N_("offline"),
    "archived": N_("archived"),
    "pending": N_("pending"),
    "approved": N_("approved"),
    "rejected": N_("rejected"),
    "withdrawn": N_("withdrawn"),
    "publication": N_("publication"),
    "change": N_("change"),
    "approval_required": N_("the template asks for a second person"),
    "budget": N_("above the budget"),
    "amount_off": N_("amount off"),
    "percent_off": N_("percent off"),
    "cash": N_("cash"),
    "random_amount": N_("random amount"),
    "unused": N_("unused"),
    "locked": N_("locked"),
    "redeemed": N_("redeemed"),
    "expired": N_("expired"),
    "revoked": N_("revoked"),
    "transferred": N_("transferred"),
    "issue": N_("issue"),
    "lock": N_("locked by an order"),
    "redeem": N_("paid with"),
    "release": N_("let go"),
    "refund": N_("came back"),
    "expire": N_("ran out"),
    "revoke": N_("taken back"),
    "transfer": N_("gift"),
    "claim": N_("claim"),
    "batch": N_("batch"),
    "claimable": N_("to be had"),
    "claimed": N_("claimed"),
    "sold_out": N_("sold out"),
    "not_started": N_("not started"),
    "limit_reached": N_("limit reached"),
    "code": N_("code"),
    "lottery": N_("lottery"),
    "manual": N_("by hand"),
    "ACCEPTED": N_("accepted"),
    "REPLAYED": N_("repeated"),
    "TEMPLATE_NOT_FOUND": N_("no such template"),
    "NOT_WARMED": N_("not loaded yet"),
    "RATE_LIMITED": N_("too fast"),
    "NOT_STARTED": N_("not started"),
    "ENDED": N_("over"),
    "PAUSED": N_("paused"),
    "NOT_ELIGIBLE": N_("wrong channel"),
    "LIMIT_REACHED": N_("limit reached"),
    "DAILY_LIMIT_REACHED": N_("limit of the day reached"),
    "SOLD_OUT": N_("sold out"),
    "BACKLOG_FULL": N_("queue full"),
    "DUPLICATE": N_("asked for twice"),
    "OFFLINE": N_("taken offline"),
    "INVALID": N_("not readable"),
    "SCOPE_MISMATCH": N_("no line it is for"),
    "THRESHOLD_NOT_MET": N_("below its threshold"),
    "NOTHING_TO_DISCOUNT": N_("nothing to take off"),
    **BATCH_WORDS,
    **FINDING_WORDS,
    **LOTTERY_WORDS,
    **RISK_WORDS,
}

SCOPES = {
    "storefront": N_("storefront"),
    "orders": N_("orders"),
    "admin": N_("admin"),
    "ops": N_("ops"),
}
"""What a key may do: apart, since a reconciliation compares ``orders`` too."""

_TONES = {
    "good": ("active", "approved", "redeemed", "ACCEPTED"),
    "wait": ("pending", "pending_approval", "scheduled", "locked"),
    "warn": ("paused", "budget", "approval_required"),
    "bad": ("rejected", "offline", "revoked"),
}
TONES = {
    name: tone
    for tones in (_TONES, BATCH_TONES, FINDING_TONES, LOTTERY_TONES, RISK_TONES)
    for tone, names in tones.items()
    for name in names
}

REASONS = {
    "CODE_INVALID": N_("This code is not valid."),
    "LIMIT_REACHED": N_("You have as many as allowed."),
    "DAILY_LIMIT_REACHED": N_("You have as many as allowed today."),
    "NOT_STARTED": N_("It cannot be had yet."),
    "CODES_NOT_SET_UP": N_("Codes are not set up here."),
    "PEPPER_MISSING": N_("The pepper of these codes is not in the settings here."),
    "ORDER_NOT_FOUND": N_("You have no such order."),
    "LOCKED_BY_ORDER": N_("Another order holds this coupon."),
    "LOCK_EXPIRED": N_("The coupons were held too long, and are gone."),
    "ALREADY_REDEEMED": N_("The order is paid already."),
    "NOTHING_LEFT": N_("Everything was sent back already."),
    "COUPON_NOT_FOUND": N_("There is no such coupon."),
    "COUPON_NOT_AVAILABLE": N_("The coupon is not unused any more. Look at it again."),
    "EXPIRED": N_("The coupon is valid no longer."),
    "LOCK_STANDS": N_("The order may still be paid. Unlock it all the same, if you know that it will not be."),
    "LOCK_BROKEN": N_("The order does not know of this lock. Reconciliation frees such a coupon."),
    "ORDER_BROKEN": N_("The order does not hold its coupons. Reconciliation names what is broken."),
    "ALREADY_REPLACED": N_("Another coupon has taken its place already."),
    "REQUEST_REUSED": N_("This request has made another coupon already."),
    "SOLD_OUT": N_("Nothing is left of the template."),
    "PAUSED": N_("It cannot be had at this moment: its template is paused."),
    "ABOVE_BUDGET": N_("One coupon may cost more than the budget. Give it by a batch, which a second person approves."),
    "DEAD_LETTER_NOT_FOUND": N_("This dead letter is gone: it was sent again or thrown away."),
    "UNREADABLE": N_("Nobody can read this message. It can only be thrown away."),
    "NOT_A_REDIS_BROKER": N_("RabbitMQ keeps its dead letters."),
    "JOB_NOT_FOUND": N_("There is no such job."),
    "API_KEY_NOT_FOUND": N_("There is no such key."),
    "KEY_MADE": N_("This form has made its key already, and the key was shown. Revoke it if it was lost."),
    "TEMPLATE_NOT_FOUND": N_("There is no such template."),
    "TEMPLATE_NO_TAKEN": N_("Another template has this number."),
    "INVALID_STATUS": N_("In its present status this cannot be done. Look at it again."),
    "OWN_TEMPLATE": N_("Another person decides: your key made it, changed it or asked for it."),
    "NOTHING_PENDING": N_("Nothing waits any more: somebody was quicker."),
    "APPROVAL_CHANGED": N_("Another request came after the one you looked at. Look again."),
    "APPROVAL_PENDING": N_("It waits for approval: withdraw it first, then change it."),
    "CHANGE_PENDING": N_("Another change waits for approval: it is decided or withdrawn first."),
    "BELOW_TAKEN": N_("So many units are taken already; the total cannot be lower."),
    "HAS_OUTSTANDING": N_("Coupons of it may still be used."),
    "HAS_ARCHIVED": N_("Coupons of it are in the archive."),
    "NOT_PATCHABLE": N_("After publication only name, total, end of claiming and messages may change."),
    **BATCH_REASONS,
    **FINDING_REASONS,
    **LOTTERY_REASONS,
    **RISK_REASONS,
}
"""What is refused, by the code of its error."""


def word(name: str) -> str:
    """``name`` as people read it; as it is where the table does not know it."""
    return gettext(WORDS.get(name, name))


def scope_word(name: str) -> str:
    """A scope of keys as people read it."""
    return gettext(SCOPES.get(name, name))


def tone_of(name: str) -> str:
    """The colour of a status: good, wait, warn, bad or plain."""
    return TONES.get(name, "plain")


def reason_of(error: CouponWorkersError) -> str:
    """Why something was refused, in the reader's language."""
    if isinstance(error, StoreUnavailable):
        return gettext("%s does not answer. Nothing is known of what it did; ask again.") % error.store
    if isinstance(error, TooManyTries):
        return gettext("Too many wrong tries. Wait %s seconds.") % -(-error.wait_ms // 1000)
    if isinstance(error, InvalidInput):
        told = [(field, field_word(message)) for field, message in error.errors]
        colon = gettext(": ")
        return gettext("; ").join(f"{label_of(field)}{colon}{message}" if field else message for field, message in told)
    if isinstance(error, Conflict | NotFound | Gone) and error.code in REASONS:
        return gettext(REASONS[error.code])
    return gettext(str(error))
