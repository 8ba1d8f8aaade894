"""``coupon-workers keys``: make, list and revoke API keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.table import Column, Table
from sqlalchemy import Engine

from coupon_workers.access.api_key import KeyRecord, create_key, list_keys, revoke_key
from coupon_workers.access.principal import SCOPES
from coupon_workers.cli.connect import cli_settings
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import make_engine

_PAGE = 200


@click.group()
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
def list_() -> None:
    """Show the keys, newest first; what opens something is kept nowhere."""
    table = Table(Column("key id", no_wrap=True), "name", "scopes", "signed", "created", "revoked")
    with _engine() as engine:
        for key in _all_keys(engine):
            revoked = rfc3339(key.revoked_at) if key.revoked_at else ""
            signed = "yes" if key.signed else ""
            table.add_row(key.key_id, key.name, " ".join(key.scopes), signed, rfc3339(key.created_at), revoked)
    Console().print(table)


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
    engine = make_engine(cli_settings())
    try:
        yield engine
    finally:
        engine.dispose()
