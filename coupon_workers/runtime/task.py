"""The names of the tasks and how to send one. A producer names a task; it never imports the actor (DESIGN 4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from coupon_workers.runtime.clock import to_ms


class Queue(StrEnum):
    """A queue each for work that must not wait behind the other."""

    SETTLE = "settle"
    CARE = "care"
    NOTIFY = "notify"
    CAMPAIGN = "campaign"


@dataclass(frozen=True, slots=True)
class Task:
    """A message: the actor's name, its queue, its arguments (JSON values); it waits for ``delay_ms`` in the broker."""

    name: str
    queue: Queue
    args: tuple[int | str, ...] = ()
    delay_ms: int = 0


class Post(Protocol):
    """Whatever takes a task to the workers."""

    def send(self, task: Task) -> None:
        """Enqueue ``task``. Raises ``StoreUnavailable`` when the broker did not take it."""


RESERVED = "reserved"
"""What a step's message says that has a place in the line of background work."""


def settle_claims(template_id: int, bucket: int) -> Task:
    """The doorbell: drain the pending claims of a template's bucket."""
    return Task("settle_claims", Queue.SETTLE, (template_id, bucket))


def preheat_template(template_id: int) -> Task:
    """Rebuild a template's keys in Redis from PostgreSQL."""
    return Task("preheat_template", Queue.CARE, (template_id,))


def sweep_gates() -> Task:
    """Ring forgotten bells, warm cold templates, bring late changes of templates to Redis."""
    return Task("sweep_gates", Queue.CARE)


def prune_history() -> Task:
    """Delete books past their keeping time, and the gates of templates long over."""
    return Task("prune_history", Queue.CARE)


def relay_outbox() -> Task:
    """Pass events of the outbox on to those who are to hear of them, and wake what is due for delivery."""
    return Task("relay_outbox", Queue.NOTIFY)


def deliver_messages(target: str) -> Task:
    """Send what is due to one target: ``webhook:<id>``, or a channel to users."""
    return Task("deliver_messages", Queue.NOTIFY, (target,))


def release_overdue_locks() -> Task:
    """Let go the coupons of orders that were not paid in time."""
    return Task("release_overdue_locks", Queue.CARE)


def settle_order_events() -> Task:
    """Settle events of orders that missed what they wait for, and refuse those that waited too long."""
    return Task("settle_order_events", Queue.CARE)


def expire_coupons() -> Task:
    """End the unused coupons whose validity has passed."""
    return Task("expire_coupons", Queue.CARE)


def archive_coupons() -> Task:
    """Move coupons that ended long ago into the archive."""
    return Task("archive_coupons", Queue.CARE)


def revoke_coupons(revocation_id: int) -> Task:
    """Go on with a recall of a template's unused coupons."""
    return Task("revoke_coupons", Queue.CARE, (revocation_id,))


def sweep_revocations() -> Task:
    """Send recalls again that nobody goes on with."""
    return Task("sweep_revocations", Queue.CARE)


def warn_of_expiry(logical_at: datetime) -> Task:
    """Tell users of the coupons that will end soon: those of the hour that belongs to ``logical_at``."""
    return Task("warn_of_expiry", Queue.CARE, (to_ms(logical_at),))


def close_day(logical_at: datetime) -> Task:
    """Close the books of the latest business day that is over at ``logical_at`` in every time zone in use."""
    return Task("close_day", Queue.CARE, (to_ms(logical_at),))


def reconcile(kind: str, logical_at: datetime) -> Task:
    """The scheduled reconciliation of a kind."""
    return Task("reconcile", Queue.CARE, (kind, to_ms(logical_at)))


def run_reconciliation(run_id: int) -> Task:
    """A reconciliation that was asked for."""
    return Task("run_reconciliation", Queue.CARE, (run_id,))


def sweep_reconciliations() -> Task:
    """Send reconciliations again that were forgotten."""
    return Task("sweep_reconciliations", Queue.CARE)


def sweep_risk() -> Task:
    """Reject overdue reviews, tell gates what they have missed, empty their logs of refusals."""
    return Task("sweep_risk", Queue.CARE)


def score_accounts() -> Task:
    """Have the shop's scorer look at the accounts that are due."""
    return Task("score_accounts", Queue.CARE)


def stage_batch(batch_id: int) -> Task:
    """Read a batch's audience into its shards."""
    return Task("stage_batch", Queue.CAMPAIGN, (batch_id,))


def issue_shard(batch_id: int, shard: int, cursor: int, reserved_in_ms: int | None = None) -> Task:
    """Issue the next chunk of a shard, if it still stands at ``cursor``; in so many milliseconds, if it has reserved a
    place in the line (see ``runtime/pace.py``)."""
    if reserved_in_ms is None:
        return Task("issue_shard", Queue.CAMPAIGN, (batch_id, shard, cursor))
    return Task("issue_shard", Queue.CAMPAIGN, (batch_id, shard, cursor, RESERVED), delay_ms=reserved_in_ms)


def sweep_batches() -> Task:
    """Start batches that are due, wake those whose message was lost, finish those that are through."""
    return Task("sweep_batches", Queue.CARE)


def generate_codes(code_batch_id: int) -> Task:
    """Generate the next codes of a batch."""
    return Task("generate_codes", Queue.CAMPAIGN, (code_batch_id,))


def sweep_codes() -> Task:
    """Wake generations that lost their message, end batches of codes that are over, have the gate count missed uses."""
    return Task("sweep_codes", Queue.CARE)


def settle_draws(lottery_id: int) -> Task:
    """The doorbell of a lottery: drain its pending draws."""
    return Task("settle_draws", Queue.SETTLE, (lottery_id,))


def preheat_lottery(lottery_id: int) -> Task:
    """Rebuild a lottery's keys in Redis from PostgreSQL."""
    return Task("preheat_lottery", Queue.CARE, (lottery_id,))


def sweep_lotteries() -> Task:
    """Ring forgotten bells of lotteries, warm cold ones, bring late changes to Redis, end what is over."""
    return Task("sweep_lotteries", Queue.CARE)
