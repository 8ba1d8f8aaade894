"""``coupon-workers queues`` and ``dead-letters``: what waits, and what was given up."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Column, Table

from coupon_workers.cli.connect import cli_settings
from coupon_workers.runtime.broker_queues import BrokerQueues
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.dead_letter import discard_dead_letter, list_dead_letters, replay_dead_letter
from coupon_workers.runtime.queue_depth import pending_depths
from coupon_workers.runtime.redis_client import make_redis

_MOST_TEMPLATES = 20
_MOST_LETTERS = 200


@click.command()
def queues() -> None:
    """Show the depth and age of the queues, and the accepted claims that wait to be settled."""
    settings = cli_settings()
    messages = Table("queue", "waiting", "oldest", "delayed", "in work", "dead letters", title="messages")
    for queue in BrokerQueues(settings).depths():
        in_work = "" if queue.in_work is None else str(queue.in_work)
        messages.add_row(
            queue.name, str(queue.depth), _age(queue.age_ms), str(queue.delayed), in_work, str(queue.dead_letters)
        )
    pending = pending_depths(make_redis(settings))
    total = sum(bucket.depth for bucket in pending)
    claims = Table("template", "bucket", "waiting", "oldest", title=f"claims that wait: {total}")
    for bucket in pending[:_MOST_TEMPLATES]:
        claims.add_row(str(bucket.template_id), str(bucket.bucket), str(bucket.depth), _age(bucket.oldest_age_ms))
    console = Console()
    console.print(messages)
    console.print(claims)


@click.group("dead-letters")
def dead_letters() -> None:
    """Messages that were given up: look at them, send them again, or throw them away."""


@dead_letters.command("list")
def list_() -> None:
    """Show them queue by queue, the latest first."""
    table = Table(Column("id", no_wrap=True), "queue", "task", "arguments", "failed with", "since")
    for letter in list_dead_letters(BrokerQueues(cli_settings()).redis, limit=_MOST_LETTERS):
        arguments = " ".join(map(str, letter.args or ()))
        table.add_row(
            letter.id, letter.queue, letter.actor or "?", arguments, letter.error or "", rfc3339(letter.died_at)
        )
    Console().print(table)


@dead_letters.command()
@click.argument("message_id")
def replay(message_id: str) -> None:
    """Send it to its queue again, as new."""
    replay_dead_letter(BrokerQueues(cli_settings()).redis, message_id)
    click.echo(f"{message_id} sent again", err=True)


@dead_letters.command()
@click.argument("message_id")
def discard(message_id: str) -> None:
    """Throw it away for good."""
    discard_dead_letter(BrokerQueues(cli_settings()).redis, message_id)
    click.echo(f"{message_id} discarded", err=True)


def _age(age_ms: int | None) -> str:
    return "" if age_ms is None else f"{age_ms / 1000:.1f} s"
