"""``coupon-workers batch``: give a template to an audience, watch it, stop it, see who got nothing."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import click
from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from coupon_workers.campaigns import batch_control as control
from coupon_workers.campaigns.batch import BatchPolicy, BatchStatus
from coupon_workers.campaigns.batch_failures import failures_csv
from coupon_workers.campaigns.batch_reading import BatchAnswer, read_one, read_page
from coupon_workers.campaigns.new_batch import NewBatch, create_batch
from coupon_workers.campaigns.tag_import import import_tags
from coupon_workers.cli.batch_progress import left_running, wait_for_end
from coupon_workers.cli.batch_table import batch_list, summary
from coupon_workers.cli.connect import OPERATOR, cli_settings
from coupon_workers.errors import InvalidInput
from coupon_workers.field_message import field_message
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.templates.field_type import Instant, Name

LONGEST_NAME = 64
_UNHAPPY = (BatchStatus.FAILED, BatchStatus.CANCELLED)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False, readable=True, allow_dash=True)


def identity(word: str) -> int:
    """An option's number. Raises ``UsageError`` when it cannot be one."""
    if not (word.isascii() and word.isdecimal() and len(word) < 20 and 0 < int(word) < 2**63):
        raise click.UsageError(f"{word!r} is no such number; they are whole, as the API shows them")
    return int(word)


def checked(kind: Any) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """An option held to the rule that the API holds the field to."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else TypeAdapter(kind).validate_python(value)
        except ValidationError as error:
            raise click.BadParameter(field_message(error.errors()[0]), ctx, param) from None

    return check


@click.group(short_help="Give a template to an audience, and watch it.")
def batch() -> None:
    """Campaign batches: a template given to a file of users, or to those whom tags mean."""


@batch.command()
@click.argument("file", type=_FILE, required=False)
@click.option("--template", "template_id", type=identity, required=True, metavar="ID", help="What they get.")
@click.option("--tags", metavar="EXPR", help='Instead of FILE: an expression over tags, as "vip and not churned".')
@click.option("--name", callback=checked(Name), help="What it is called. [default: the file's name]")
@click.option(
    "--policy",
    type=click.Choice([policy.value for policy in BatchPolicy]),
    default=BatchPolicy.ALL_OR_NOTHING.value,
    show_default=True,
    help="Without enough stock: nothing, or as many as there are.",
)
@click.option("--start-at", callback=checked(Instant), metavar="INSTANT", help="RFC 3339. [default: at once]")
@click.option("--wait", is_flag=True, help="Show how it goes on until it ends; Ctrl-C leaves it running.")
def create(
    file: Path | None,
    template_id: int,
    tags: str | None,
    name: str | None,
    policy: str,
    start_at: datetime | None,
    wait: bool,
) -> None:
    """Give a template to the users of FILE: CSV with a column user_id, JSONL or Parquet; - is standard input.

    Prints the batch's number, alone on its line. With --wait it exits 1 when the batch fails or is cancelled.
    """
    if (file is None) == (tags is None):
        raise click.UsageError("name a FILE, or give --tags: one of them, not both")
    services = make_services(cli_settings())
    asked = NewBatch(
        batch_id=services.next_id(0),
        template_id=template_id,
        name=name or _name_of(file, tags),
        policy=BatchPolicy(policy),
        tags=tags,
        file_name=None if file is None or str(file) == "-" else file.name,
        start_at=start_at,
    )
    with _opened(file) as content:
        try:
            made = create_batch(services, asked, content, OPERATOR)
        except InvalidInput as error:
            raise click.ClickException("; ".join(f"{where} {what}" for where, what in error.errors)) from None
    with left_running(asked.batch_id):
        click.echo(made["batch_no"])
        if wait:
            _wait(services, asked.batch_id)
        else:
            click.echo(f"watch it with: coupon-workers batch show {made['batch_no']} --wait", err=True)


@batch.command()
@click.argument("batch_id", type=identity, metavar="NO")
@click.option("--wait", is_flag=True, help="Show how it goes on until it ends; then exit 1 if it failed.")
@click.option("--json", "as_json", is_flag=True, help="In the form of GET /v1/batches/{batch_no}.")
def show(batch_id: int, wait: bool, as_json: bool) -> None:
    """Show how a batch stands."""
    services = make_services(cli_settings())
    if wait:
        _wait(services, batch_id)
    else:
        _print(read_one(services, batch_id), as_json)


@batch.command("list")
@click.option("--status", type=click.Choice([status.value for status in BatchStatus]), help="Only those in it now.")
@click.option("--template", "template_id", type=identity, metavar="ID", help="Only those of this template.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
def list_(status: str | None, template_id: int | None, limit: int, as_json: bool) -> None:
    """List batches, the newest first."""
    services = make_services(cli_settings())
    wanted = BatchStatus(status) if status else None
    batches = read_page(services, limit=limit, status=wanted, template_id=template_id)
    if as_json:
        click.echo(json.dumps([each.model_dump(mode="json") for each in batches], ensure_ascii=False))
        return
    batch_list(Console(), batches)


@batch.command()
@click.argument("batch_id", type=identity, metavar="NO")
def pause(batch_id: int) -> None:
    """Stop issuing until it is resumed; its stock and its place are kept."""
    _move(control.pause_batch, batch_id)


@batch.command()
@click.argument("batch_id", type=identity, metavar="NO")
def resume(batch_id: int) -> None:
    """Go on where it was paused."""
    _move(control.resume_batch, batch_id)


@batch.command()
@click.argument("batch_id", type=identity, metavar="NO")
def cancel(batch_id: int) -> None:
    """End it for good: issued coupons stay, what is left of its stock goes back."""
    _move(control.cancel_batch, batch_id)


@batch.command()
@click.argument("batch_id", type=identity, metavar="NO")
def failures(batch_id: int) -> None:
    """Print the rows that got no coupon, as CSV: row, value, reason."""
    for piece in failures_csv(make_services(cli_settings()), batch_id):
        click.echo(piece, nl=False)


@batch.command()
@click.argument("file", type=_FILE)
def tags(file: Path) -> None:
    """Add the tags of FILE, a CSV with the columns user_id and tag, for audiences by expression."""
    with _opened(file) as content:
        assert content is not None
        count = import_tags(make_services(cli_settings()), content)
    for row in count.named:
        click.echo(f"row {row.row_no} left out: {row.value!r} {row.reason}", err=True)
    click.echo(f"{count.rows:,} rows: {count.added:,} tags added, {count.invalid:,} rows left out")


def _name_of(file: Path | None, tags: str | None) -> str:
    stem = "" if file is None or str(file) == "-" else file.stem
    name = "".join(each if each.isprintable() else "_" for each in stem or tags or "standard input")
    return name[:LONGEST_NAME].strip() or "batch"


@contextmanager
def _opened(file: Path | None) -> Iterator[BinaryIO | None]:
    """The file, seekable: what comes through a pipe is put into a temporary one first."""
    if file is None:
        yield None
        return
    source = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    with source:
        if source.seekable():
            yield source
            return
        with TemporaryFile() as copy:
            shutil.copyfileobj(source, copy)
            yield copy


def _wait(services: Services, batch_id: int) -> None:
    ended = wait_for_end(services, batch_id)
    _print(ended, as_json=False)
    if ended.status in _UNHAPPY:
        sys.exit(1)


def _move(move: Callable[[Services, int, str], Any], batch_id: int) -> None:
    services = make_services(cli_settings())
    move(services, batch_id, OPERATOR)
    click.echo(f"batch {batch_id} is {read_one(services, batch_id).status}")


def _print(found: BatchAnswer, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json"), ensure_ascii=False))
    else:
        summary(Console(), found)
