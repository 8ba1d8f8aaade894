"""``coupon-workers env``: the settings in force, and the addresses of a running ``up``."""

from __future__ import annotations

import re
import shlex

import click
from pydantic import SecretStr

from coupon_workers.cli.connect import BROKER, DATABASE, STOCK, nothing_runs, settings_in_force
from coupon_workers.embedded.servers_file import running_settings
from coupon_workers.runtime.settings import PREFIX, Settings

_MASK = "***"
_EMBEDDED = "(embedded)"
_PASSWORD = re.compile(r"(?<=://)([^:/?#]*):[^?#]*@")  # up to the last @: a password may hold one
_PASSWORD_PARAMETER = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)


@click.command(short_help="Show the settings in force, secrets masked.")
@click.option("--urls", is_flag=True, help="The addresses of the running `up` of COUPON_DATA_DIR, as shell lines.")
def env(urls: bool) -> None:
    """Print the settings in force, one a line, secrets masked.

    Addresses that are not set are those of the running `up`, if there is one: otherwise `(embedded)`.

    With --urls: lines for a shell to evaluate, secrets included: eval "$(coupon-workers env --urls)".
    """
    settings = settings_in_force()
    for line in _url_lines(settings) if urls else _setting_lines(settings):
        click.echo(line)


def _setting_lines(settings: Settings) -> list[str]:
    """``COUPON_CRASH_AT`` is for fault tests: nobody needs to see it unless it is set."""
    values = {name: getattr(settings, name) for name in Settings.model_fields}
    return [
        f"{PREFIX}{name.upper()}={_shown(name, value)}" for name, value in values.items() if value or name != "crash_at"
    ]


def _shown(name: str, value: object) -> str:
    if value is None:
        return _EMBEDDED if name in (DATABASE, STOCK, BROKER) else ""
    return masked(value.get_secret_value()) if isinstance(value, SecretStr) else str(value)


def masked(secret: str) -> str:
    """An address without its passwords; anything else not at all."""
    if "://" not in secret:
        return _MASK
    return _PASSWORD_PARAMETER.sub(rf"\g<1>{_MASK}", _PASSWORD.sub(rf"\g<1>:{_MASK}@", secret))


def _url_lines(settings: Settings) -> list[str]:
    running = running_settings(settings.data_dir)
    if running is None:
        raise click.ClickException(nothing_runs(settings.data_dir))
    return [f"export {name}={shlex.quote(value)}" for name, value in running.items()]
