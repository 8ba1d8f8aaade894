"""``coupon-workers queues`` and ``dead-letters``: what waits, and what was given up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

import click
import redis
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from sqlalchemy import Engine

from coupon_workers.audit import dead_letter_desk as desk
from coupon_workers.cli.connect import BROKER, DATABASE, STOCK, cli_settings
from coupon_workers.runtime.broker_queues import BrokerQueues, QueueDepth
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.dead_letter import list_dead_letters
from coupon_workers.runtime.queue_depth import PendingDepth, pending_depths
from coupon_workers.runtime.redis_client import make_redis

_MOST_TEMPLATES = 20
_MOST_LETTERS = 200


@click.command(short_help="Show what waits, and for how long.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, in the form of GET /v1/queues.")
def queues(as_json: bool) -> None:
    """Show the depth and age of the queues, and the accepted claims that wait to be settled."""
    settings = cli_settings(STOCK, BROKER)
    depths = BrokerQueues(settings).depths()
    pending = pending_depths(make_redis(settings))
    total = sum(bucket.depth for bucket in pending)
    if as_json:
        claims = [{**asdict(bucket), "template_id": str(bucket.template_id)} for bucket in pending]
        queued = [asdict(queue) for queue in depths]
        click.echo(json.dumps({"queues": queued, "pending_claims": claims, "pending_total": total}))
        return
    console = Console()
    console.print(_message_table(depths))
    console.print(_claim_table(pending, total))


def _message_table(depths: Sequence[QueueDepth]) -> Table:
    messages = Table("queue", "waiting", "oldest", "delayed", "in work", "dead letters", title="messages")
    for queue in depths:
        in_work = "" if queue.in_work is None else str(queue.in_work)
        messages.add_row(
            queue.name, str(queue.depth), _age(queue.age_ms), str(queue.delayed), in_work, str(queue.dead_letters)
        )
    return messages


def _claim_table(pending: Sequence[PendingDepth], total: int) -> Table:
    claims = Table("template", "bucket", "waiting", "oldest", title=f"claims that wait: {total}")
    for bucket in pending[:_MOST_TEMPLATES]:
        claims.add_row(str(bucket.template_id), str(bucket.bucket), str(bucket.depth), _age(bucket.oldest_age_ms))
    return claims


@click.group("dead-letters", short_help="List, replay or discard messages given up.")
def dead_letters() -> None:
    """Messages that were given up: look at them, send them again, or throw them away."""


@dead_letters.command("list")
def list_() -> None:
    """Show them queue by queue, the latest first."""
    table = Table(Column("id", no_wrap=True), "queue", "task", "arguments", "failed with", "since")
    for letter in list_dead_letters(BrokerQueues(cli_settings(BROKER)).redis, limit=_MOST_LETTERS):
        arguments = " ".join(map(str, letter.args or ()))
        words = (letter.id, letter.queue, letter.actor or "?", arguments, letter.error or "", rfc3339(letter.died_at))
        table.add_row(*map(escape, words))
    Console().print(table)


@dead_letters.command()
@click.argument("message_id")
def replay(message_id: str) -> None:
    """Send it to its queue again, as new."""
    _decide(desk.replay, message_id)
    click.echo(f"{message_id} sent again", err=True)


@dead_letters.command()
@click.argument("message_id")
def discard(message_id: str) -> None:
    """Throw it away for good."""
    _decide(desk.discard, message_id)
    click.echo(f"{message_id} discarded", err=True)


def _decide(decide: Callable[[Engine, redis.Redis, str], None], message_id: str) -> None:
    settings = cli_settings(DATABASE, BROKER)
    engine = make_engine(settings)
    try:
        decide(engine, BrokerQueues(settings).redis, message_id)
    finally:
        engine.dispose()


def _age(age_ms: int | None) -> str:
    return "" if age_ms is None else f"{age_ms / 1000:.1f} s"
