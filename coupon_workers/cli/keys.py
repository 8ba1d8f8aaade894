"""``coupon-workers keys``: make, list and revoke API keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from sqlalchemy import Engine

from coupon_workers.access.api_key import KeyRecord, create_key, list_keys, revoke_key
from coupon_workers.access.principal import SCOPES
from coupon_workers.cli.connect import DATABASE, cli_settings
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import make_engine

_PAGE = 200
_LONGEST_NAME = 32
"""Characters of a name in the table."""

_WIDE = 200
"""Columns: a row stays one line, also in a narrow terminal or a file."""


@click.group(short_help="Create, list and revoke API keys.")
def keys() -> None:
    """API keys: who may call, with which scope."""


@keys.command()
@click.option("--name", required=True, help="Whom it is for.")
@click.option(
    "--scope", "scopes", required=True, multiple=True, type=click.Choice(SCOPES), help="May be given several times."
)
@click.option("--signed", is_flag=True, help="Its requests must be signed.")
def create(name: str, scopes: tuple[str, ...], signed: bool) -> None:
    """Make a key and print it, alone, on standard output: it is shown this once."""
    with _engine() as engine:
        made = create_key(engine, name=name, scopes=scopes, signed=signed)
    click.echo(made.key)


@keys.command("list")
@click.option("--all", "revoked_too", is_flag=True, help="The revoked ones too.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list, in the form of GET /v1/api-keys.")
def list_(revoked_too: bool, as_json: bool) -> None:
    """Show the keys that are valid, newest first, in UTC; what opens something is kept nowhere."""
    with _engine() as engine:
        shown = [key for key in _all_keys(engine) if revoked_too or key.revoked_at is None]
    if as_json:
        click.echo(json.dumps([key.shown() for key in shown], ensure_ascii=False))
        return
    console = Console()
    console.width = max(console.width, _WIDE)
    console.print(_table(shown, revoked_too))


def _table(shown: Sequence[KeyRecord], revoked_too: bool) -> Table:
    """What no key has needs no column."""
    some_signed = any(key.signed for key in shown)
    signed_heading, revoked_heading = ["signed"] * some_signed, ["revoked"] * revoked_too
    headings = ("key id", "name", "scopes", *signed_heading, "created", *revoked_heading)
    columns = [Column(heading, no_wrap=True, max_width=_LONGEST_NAME) for heading in headings]
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for key in shown:
        signed, revoked = ["yes" if key.signed else ""] * some_signed, [_minute(key.revoked_at)] * revoked_too
        table.add_row(key.key_id, escape(key.name), " ".join(key.scopes), *signed, _minute(key.created_at), *revoked)
    return table


def _minute(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else ""


@keys.command()
@click.argument("key_id")
def revoke(key_id: str) -> None:
    """End the key with this id for good. Every process knows within five seconds."""
    with _engine() as engine:
        revoked_at = revoke_key(engine, key_id).revoked_at
    click.echo(f"{key_id} revoked {rfc3339(revoked_at) if revoked_at else ''}", err=True)


def _all_keys(engine: Engine) -> Iterator[KeyRecord]:
    before = None
    while page := list_keys(engine, limit=_PAGE, before=before):
        yield from page
        before = (page[-1].created_at, page[-1].key_id)


@contextmanager
def _engine() -> Iterator[Engine]:
    engine = make_engine(cli_settings(DATABASE))
    try:
        yield engine
    finally:
        engine.dispose()
