"""The actors: message -> one use case -> ack. A few lines each; no SQL, no Redis calls.

The broker is set before any actor is declared: without one Dramatiq silently makes one on localhost.
"""

from __future__ import annotations

import dramatiq

from coupon_workers.runtime.broker import make_broker
from coupon_workers.runtime.cycle_collector import collect_seldom
from coupon_workers.runtime.orphan import end_with_parent
from coupon_workers.runtime.settings import settings
from coupon_workers.runtime.structured_log import configure_logs

configure_logs(settings())
broker = make_broker(settings(), for_workers=True)
dramatiq.set_broker(broker)


class _Boot(dramatiq.Middleware):
    """A worker whose master was killed ends too, so that the next master finds its place free."""

    def after_process_boot(self, broker: dramatiq.Broker) -> None:
        end_with_parent()
        collect_seldom()


broker.add_middleware(_Boot())

from actors import (  # noqa: E402 - after the broker is set
    archive_coupons,
    close_day,
    deliver_messages,
    expire_coupons,
    generate_codes,
    issue_shard,
    preheat_lottery,
    preheat_template,
    prune_history,
    reconcile,
    relay_outbox,
    release_overdue_locks,
    revoke_coupons,
    run_reconciliation,
    score_accounts,
    settle_claims,
    settle_draws,
    settle_order_events,
    stage_batch,
    sweep_batches,
    sweep_codes,
    sweep_gates,
    sweep_lotteries,
    sweep_reconciliations,
    sweep_revocations,
    sweep_risk,
    warn_of_expiry,
)

__all__ = [
    "archive_coupons",
    "broker",
    "close_day",
    "deliver_messages",
    "expire_coupons",
    "generate_codes",
    "issue_shard",
    "preheat_lottery",
    "preheat_template",
    "prune_history",
    "reconcile",
    "relay_outbox",
    "release_overdue_locks",
    "revoke_coupons",
    "run_reconciliation",
    "score_accounts",
    "settle_claims",
    "settle_draws",
    "settle_order_events",
    "stage_batch",
    "sweep_batches",
    "sweep_codes",
    "sweep_gates",
    "sweep_lotteries",
    "sweep_reconciliations",
    "sweep_revocations",
    "sweep_risk",
    "warn_of_expiry",
]
