"""Numbers that no rule judges and that a reader of a report wants beside it."""

from __future__ import annotations

from coupon_workers.checking.gate_reading import gate_marks, known_buckets
from coupon_workers.checking.reading import rows
from coupon_workers.runtime.services import Services

_COUNTS = """
    SELECT (SELECT count(*) FROM coupon_template) AS templates,
           (SELECT count(*) FROM coupon) AS coupons,
           (SELECT count(*) FROM coupon_archive) AS archived,
           (SELECT count(*) FROM claim_rejection) AS rejections,
           (SELECT count(*) FROM outbox) AS outbox,
           (SELECT count(*) FROM claim_set_aside) AS set_aside,
           (SELECT count(*) FROM coupon_order) AS orders,
           (SELECT count(*) FROM coupon_refund) AS refunds,
           (SELECT count(*) FROM ledger_entry) AS ledger_entries,
           (SELECT count(*) FROM order_event WHERE state = 'waiting') AS waiting_events,
           (SELECT count(*) FROM issue_batch) AS batches,
           (SELECT count(*) FROM issue_batch WHERE status IN ('staging', 'ready', 'running', 'paused')) AS open_batches,
           (SELECT count(*) FROM code_batch) AS code_batches,
           (SELECT coalesce(sum(generated_count), 0) FROM code_batch) AS codes,
           (SELECT coalesce(sum(used_count), 0) FROM code_batch) AS used_codes,
           (SELECT count(*) FROM lottery) AS lotteries,
           (SELECT coalesce(sum(draw_count), 0) FROM lottery) AS draws
"""


def facts(services: Services) -> dict[str, int]:
    """Counts of templates, coupons, archived ones, rejections, events, entries set aside, orders with coupons and
    their refunds and bookings, events of orders not known yet, batches and open ones, batches of codes with their codes
    and used ones, lotteries with their draws, queued claims, and cold buckets.

    Raises ``StoreUnavailable``.
    """
    [counts] = rows(services, _COUNTS)
    marks = gate_marks(services.redis, known_buckets(services.redis))
    return {
        **{name: int(value) for name, value in counts._mapping.items()},
        "queued": sum(mark.pending for mark in marks),
        "warm_buckets": sum(mark.generation is not None for mark in marks),
        "cold_buckets": sum(mark.generation is None for mark in marks),
    }
