"""``coupon-workers migrate``: bring the database to the newest schema."""

from __future__ import annotations

import click

from coupon_workers.cli.connect import DATABASE, cli_settings
from coupon_workers.runtime.database import database_errors, make_engine
from coupon_workers.schema.migration import current_revision, upgrade


@click.command(short_help="Bring the database to the newest schema.")
def migrate() -> None:
    """Bring the database to the newest schema. Does nothing when it is there; safe while others start too."""
    engine = make_engine(cli_settings(DATABASE))
    try:
        with database_errors():
            before = current_revision(engine)
            upgrade(engine)
            after = current_revision(engine)
    finally:
        engine.dispose()
    click.echo(f"schema {after}" if before == after else f"schema {before or 'empty'} -> {after}", err=True)
