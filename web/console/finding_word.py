"""Words of reconciliation: kinds, states, classes of findings, and what mends them."""

from __future__ import annotations

from web.console.language import N_

FINDING_WORDS = {
    "stock": N_("stock"),
    "state": N_("coupons and bookings"),
    "orders": N_("orders and statement"),
    "batches": N_("campaign batches"),
    "codes": N_("redeem codes"),
    "open": N_("open"),
    "repaired": N_("repaired by itself"),
    "ignored": N_("left as it is"),
    "resolved": N_("gone by itself"),
    "queued": N_("waits for a worker"),
    "statement_missing": N_("the day's statement has not come"),
    "redeemed_without_order": N_("redeemed here, and no such order there"),
    "discount_without_redemption": N_("a discount there, and not redeemed here"),
    "currency_differs": N_("another currency"),
    "discount_differs": N_("another discount"),
    "paid_differs": N_("another amount paid"),
    "refund_missing_here": N_("refunded there, not here"),
    "refund_missing_there": N_("refunded here, not there"),
    "booking_missing": N_("not booked"),
    "booking_differs": N_("booked otherwise"),
    "over_issued": N_("more coupons than the total"),
    "claim_lost": N_("a claim is lost"),
    "coupons_differ": N_("coupons are lost, or made of nothing"),
    "issued_counter_differs": N_("the counter of coupons is wrong"),
    "rejected_counter_differs": N_("the counter of rejections is wrong"),
    "gate_stock_differs": N_("the stock in Redis is wrong"),
    "taker_count_differs": N_("a user's count is wrong"),
    "history_broken": N_("a coupon's history is broken"),
    "status_differs": N_("a status is not its history's"),
    "coupon_held_by_no_order": N_("locked for no order"),
    "redeemed_by_no_order": N_("redeemed by no order"),
    "use_differs": N_("a use is not as its order is"),
    "lock_of_closed_order": N_("locked for a closed order"),
    "lock_overdue": N_("locked past its time"),
    "expired_not_ended": N_("expired, and not ended"),
    "batch_counts_differ": N_("the counts of a batch are wrong"),
    "batch_stuck": N_("a batch stands still"),
    "code_counts_differ": N_("the counts of codes are wrong"),
    "recount_template": N_("count the template anew"),
    "preheat": N_("load the template into Redis anew"),
    "ring_bell": N_("wake the queue"),
    "release_order": N_("let the order's coupons go"),
    "free_coupon": N_("free the coupon"),
    "sweep_expired": N_("end what has expired"),
    "wake_batch": N_("wake the batch"),
    "wake_codes": N_("wake the batch of codes"),
    "redeem_order": N_("redeem the order's coupons here"),
    "refund_order": N_("return all that is left of the order"),
    "book_adjustment": N_("book the difference"),
}

FINDING_TONES = {
    "good": ("repaired", "resolved"),
    "wait": ("queued",),
    "warn": ("open",),
}

FINDING_REASONS = {
    "FINDING_NOT_FOUND": N_("There is no such finding."),
    "RECONCILIATION_NOT_FOUND": N_("There is no such reconciliation."),
    "FINDING_CLOSED": N_("It is decided already."),
    "NO_REPAIR": N_("Nothing is proposed for it: mend it by hand, then leave it with a reason."),
    "FINDING_OUTDATED": N_("Another amount is at stake by now. Look at it again."),
}
