"""``coupon-workers preheat``: rebuild templates' gates in Redis from PostgreSQL."""

from __future__ import annotations

import sys

import click
from sqlalchemy import text

from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.cli.connect import cli_settings
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.load.progress_bar import ProgressBar
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services

_LARGEST_ID = 2**63 - 1
_CLAIMABLE = text("""
    SELECT template_id FROM coupon_template
     WHERE status IN ('scheduled', 'active', 'paused') AND claim_end > now() ORDER BY template_id
""")


def _template_id(word: str) -> int:
    """The number. Raises ``UsageError`` when it cannot be one."""
    if not (word.isascii() and word.isdecimal() and len(word) < 20 and 0 < int(word) <= _LARGEST_ID):
        raise click.UsageError(f"{word!r} is no template id; ids are whole numbers, as the API shows them")
    return int(word)


@click.command(short_help="Rebuild templates in Redis from PostgreSQL.")
@click.argument("template_ids", nargs=-1, type=_template_id, metavar="[TEMPLATE_ID]...")
@click.option("--all", "every", is_flag=True, help="Every template that can be claimed now or later.")
def preheat(template_ids: tuple[int, ...], every: bool) -> None:
    """Rebuild the gate of templates from the database; safe at any time, also under traffic.

    Exits 1 when one of them could not be preheated; the others are.
    """
    if bool(template_ids) == every:
        raise click.UsageError("name templates, or say --all")
    services = make_services(cli_settings())
    problems = preheat_each(services, claimable_templates(services) if every else tuple(dict.fromkeys(template_ids)))
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        sys.exit(1)


def claimable_templates(services: Services) -> tuple[int, ...]:
    """The published templates that are not over. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        return tuple(connection.scalars(_CLAIMABLE))


def preheat_each(services: Services, template_ids: tuple[int, ...]) -> list[str]:
    """Preheat each template and say how many coupons were loaded; returns what could not be done.

    Raises ``StoreUnavailable``.
    """
    problems: list[str] = []
    coupons = 0
    with ProgressBar() as bar:
        step = bar.counts_up("preheating", len(template_ids))
        for template_id in template_ids:
            try:
                coupons += preheat_template(services, template_id)
            except NotFound as error:
                problems.append(str(error))
            except Conflict as error:
                problems.append(f"template {template_id}: {error}")
            step()
    click.echo(f"{_number(len(template_ids) - len(problems), 'template')} warm, {_number(coupons, 'coupon')} loaded")
    return problems


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
