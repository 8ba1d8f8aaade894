"""``coupon-workers codes``: generate redeem codes, watch, fetch them once, revoke them, look one up."""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime
from typing import Any, BinaryIO

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from coupon_workers.cli.batch import checked, identity
from coupon_workers.cli.batch_progress import OUTAGE_S, POLL_S
from coupon_workers.cli.connect import OPERATOR, cli_settings
from coupon_workers.codes.code_batch import LARGEST, CodeBatchStatus
from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.codes.code_batch_reading import CodeBatchAnswer, read_one
from coupon_workers.codes.code_export import fetch_codes
from coupon_workers.codes.code_form import LONGEST, LONGEST_PREFIX, SHORTEST, CodeForm
from coupon_workers.codes.code_lookup import look_up_code
from coupon_workers.codes.new_code_batch import NewCodeBatch, create_code_batch
from coupon_workers.errors import InvalidInput, StoreUnavailable
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.templates.field_type import Instant, Word


def _prefix(ctx: click.Context, param: click.Parameter, value: str) -> str:
    allowed = value.isascii() and value.replace("-", "").isalnum() if value else True
    if not allowed or len(value) > LONGEST_PREFIX:
        raise click.BadParameter(f"letters, digits and dashes, at most {LONGEST_PREFIX}", ctx, param)
    return value.upper()


@click.group(short_help="Generate redeem codes, and look after them.")
def codes() -> None:
    """Redeem codes: a batch of them for a template, each for one coupon."""


@codes.command()
@click.option("--template", "template_id", type=identity, required=True, metavar="ID", help="What they are for.")
@click.option("--quantity", type=click.IntRange(1, LARGEST), required=True, help="How many.")
@click.option("--length", type=click.IntRange(SHORTEST, LONGEST), default=12, show_default=True, help="Of each.")
@click.option("--prefix", default="", callback=_prefix, help="Before each; it shortens nothing.")
@click.option("--channel", callback=checked(Word), help="The only one in which they hold. [default: all]")
@click.option("--no-check-digit", is_flag=True, help="Without a last character that shows typing errors.")
@click.option("--expires-at", callback=checked(Instant), metavar="INSTANT", help="[default: with the template]")
@click.option("--wait", is_flag=True, help="Show how it goes on; Ctrl-C leaves it running.")
def generate(
    template_id: int,
    quantity: int,
    length: int,
    prefix: str,
    channel: str | None,
    no_check_digit: bool,
    expires_at: datetime | None,
    wait: bool,
) -> None:
    """Have codes generated; print the number of their batch, alone on its line.

    With --wait it exits 1 when the batch is revoked or expires before it is done.
    """
    services = make_services(cli_settings())
    form = CodeForm(length, prefix, not no_check_digit)
    batch = NewCodeBatch(services.next_id(0), template_id, quantity, form, channel, expires_at)
    try:
        create_code_batch(services, batch, OPERATOR)
    except InvalidInput as error:
        raise click.ClickException("; ".join(f"{where} {what}" for where, what in error.errors)) from None
    click.echo(str(batch.code_batch_id))
    if wait:
        _wait(services, batch.code_batch_id)
    else:
        click.echo(f"watch it with: coupon-workers codes show {batch.code_batch_id} --wait", err=True)


@codes.command()
@click.argument("code_batch_id", type=identity, metavar="NO")
@click.option("--wait", is_flag=True, help="Show how it goes on until it is done.")
@click.option("--json", "as_json", is_flag=True, help="In the form of GET /v1/code-batches/{code_batch_id}.")
def show(code_batch_id: int, wait: bool, as_json: bool) -> None:
    """Show how a batch of codes stands."""
    services = make_services(cli_settings())
    if wait:
        _wait(services, code_batch_id)
    elif as_json:
        click.echo(read_one(services, code_batch_id).model_dump_json())
    else:
        click.echo(_sentence(read_one(services, code_batch_id)))


@codes.command()
@click.argument("code_batch_id", type=identity, metavar="NO")
@click.option("--output", type=click.File("wb", lazy=True), default="-", show_default="standard output", help="A file.")
def fetch(code_batch_id: int, output: BinaryIO) -> None:
    """Write the codes, a line each; once. They are deleted here when the last one was written."""
    for piece in fetch_codes(make_services(cli_settings()), code_batch_id, OPERATOR).pieces:
        output.write(piece)
        output.flush()


@codes.command()
@click.argument("code_batch_id", type=identity, metavar="NO")
def revoke(code_batch_id: int) -> None:
    """End the unused codes of a batch, and give back their stock; coupons stay."""
    services = make_services(cli_settings())
    revoke_code_batch(services, code_batch_id, OPERATOR)
    click.echo(_sentence(read_one(services, code_batch_id)))


@codes.command()
@click.argument("code", required=False)
def lookup(code: str | None) -> None:
    """Tell what became of a code, as JSON. Without CODE it is asked for, and stays out of the shell's history."""
    typed = code or click.prompt("code", hide_input=True, err=True)
    click.echo(json.dumps(look_up_code(make_services(cli_settings()), typed).model_dump(mode="json")))


def _wait(services: Services, code_batch_id: int) -> None:
    try:
        ended = _watch(services, code_batch_id)
    except (KeyboardInterrupt, StoreUnavailable):
        again = f"coupon-workers codes show {code_batch_id} --wait"
        click.echo(f"batch {code_batch_id} goes on by itself; look again with: {again}", err=True)
        raise
    click.echo(_sentence(ended))
    if ended.status != CodeBatchStatus.DONE:
        sys.exit(1)


def _watch(services: Services, code_batch_id: int) -> CodeBatchAnswer:
    console = Console(stderr=True)
    columns: tuple[Any, ...] = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    with Progress("generating", *columns, console=console, disable=not console.is_terminal) as progress:
        seen, heard_s = read_one(services, code_batch_id), time.monotonic()
        task = progress.add_task("", total=seen.quantity, pace="")
        while True:
            progress.update(task, completed=seen.generated, pace=f"{seen.codes_per_second:,.0f} codes/s")
            if seen.status != CodeBatchStatus.GENERATING:
                return seen
            time.sleep(POLL_S)
            try:
                seen, heard_s = read_one(services, code_batch_id), time.monotonic()
            except StoreUnavailable:
                if time.monotonic() - heard_s > OUTAGE_S:
                    raise


def _sentence(batch: CodeBatchAnswer) -> str:
    counts = f"{batch.generated:,} of {batch.quantity:,} codes generated, {batch.used:,} used"
    return f"batch {batch.code_batch_id} is {batch.status}: {counts}; their texts are {batch.export}"
