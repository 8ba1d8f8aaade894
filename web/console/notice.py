"""What a page says after something was done: the address it is redirected to names a notice of this table."""

from __future__ import annotations

from flask import redirect, request
from werkzeug import Response

from web.console.language import N_, gettext

NOTICES = {
    "created": N_("The draft is made. Nothing can be claimed before it is published."),
    "published": N_("Published."),
    "handed_in": N_("It waits for a second person now."),
    "paused": N_("Paused: no claim is accepted any more."),
    "resumed": N_("Claiming goes on."),
    "offline": N_("Taken offline for good."),
    "archived": N_("Put away."),
    "preheated": N_("Loaded into Redis."),
    "changed": N_("Changed."),
    "approved": N_("Approved, and done."),
    "rejected": N_("Rejected; whoever asked sees your comment."),
    "withdrawn": N_("Withdrawn."),
    "batch_made": N_("Taken on. Its audience is being read."),
    "batch_approved": N_("Approved: it starts within seconds, or at its time."),
    "batch_paused": N_("Paused: nothing is issued until it is resumed."),
    "batch_resumed": N_("It goes on where it stopped."),
    "batch_cancelled": N_("Cancelled. What was issued stays; the rest of its stock is given back."),
    "coupon_revoked": N_("Revoked. The reason is in the audit log."),
    "coupon_unlocked": N_("Unlocked: the user can use it again. The reason is in the audit log."),
    "coupon_replaced": N_("This is the new coupon. The reason is in the audit log."),
    "letter_replayed": N_("Sent to its queue again."),
    "letter_discarded": N_("Thrown away."),
    "job_sent": N_("Sent to the workers."),
    "key_revoked": N_("The key is revoked."),
    "finding_approved": N_("Approved, and repaired."),
    "finding_ignored": N_("Left as it is; the reason is kept."),
    "day_closed": N_("Closed: its numbers stay as they are."),
    "day_reopened": N_("Open again; what was closed is kept."),
    "statement_taken": N_("Taken. A worker compares it with the day's orders."),
    "run_asked": N_("Asked for. A worker compares."),
    "codes_made": N_("Taken on. The codes are being generated."),
    "lottery_made": N_("The lottery is made. The coupons of its prizes are set aside."),
    "lottery_changed": N_("Changed."),
    "lottery_approved": N_("Approved: users draw from its start on."),
    "lottery_paused": N_("Paused: nobody draws."),
    "lottery_resumed": N_("Draws are accepted again."),
    "lottery_ended": N_("Ended. What is left of its prizes goes back once the last draw is settled."),
    "policy_set": N_("In force, for every template that names it."),
    "policy_gone": N_("Taken away; its versions stay readable."),
    "rule_tried": N_("The rule is only tried now."),
    "rule_in_earnest": N_("The rule holds now."),
    "listed": N_("On the list, as of now."),
    "unlisted": N_("Off the list."),
    "claims_approved": N_("Approved: settled as if they had not been held."),
    "claims_rejected": N_("Refused; what they held is given back."),
    "codes_revoked": N_("Revoked: unused codes are worth nothing any more."),
}

FIELD = "done"


def done(address: str, name: str) -> Response:
    """Lead to ``address``, which then shows the notice: asked for again, the page does nothing again."""
    assert name in NOTICES
    mark = "&" if "?" in address else "?"
    return redirect(f"{address}{mark}{FIELD}={name}", 303)


def notice() -> str | None:
    """The notice that this request names."""
    text = NOTICES.get(request.args.get(FIELD, ""))
    return gettext(text) if text else None
