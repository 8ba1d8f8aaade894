"""``coupon-workers``: every command by name, each loaded when it is asked for."""

from __future__ import annotations

import importlib
import signal
from typing import Any

import click

from coupon_workers.audit.operator import COMMAND_LINE, acting_as
from coupon_workers.errors import CouponWorkersError, SettingsError
from coupon_workers.runtime.unknown_setting import untold_unknown_settings

COMMANDS = {
    "up": ("coupon_workers.cli.up", "up"),
    "env": ("coupon_workers.cli.env", "env"),
    "migrate": ("coupon_workers.cli.migrate", "migrate"),
    "keys": ("coupon_workers.cli.keys", "keys"),
    "queues": ("coupon_workers.cli.queues", "queues"),
    "dead-letters": ("coupon_workers.cli.queues", "dead_letters"),
    "batch": ("coupon_workers.cli.batch", "batch"),
    "reconcile": ("coupon_workers.cli.reconcile", "reconcile"),
    "codes": ("coupon_workers.cli.codes", "codes"),
    "lottery": ("coupon_workers.cli.lottery", "lottery"),
    "close": ("coupon_workers.cli.close", "close"),
    "preheat": ("coupon_workers.cli.preheat", "preheat"),
    "demo": ("coupon_workers.cli.demo", "demo"),
    "replay": ("coupon_workers.cli.replay", "replay"),
    "check": ("coupon_workers.cli.check", "check"),
}
"""Name → module and attribute, in the order in which the help shows them."""


_INTERRUPTED = 128 + signal.SIGINT


class _BadSetting(click.ClickException):
    exit_code = 2  # as for a wrong option


class LazyGroup(click.Group):
    """A group whose commands are imported one at a time: a command pays for what it needs, and one that cannot be
    loaded does not take the others with it. Errors of ours end any command with one line on standard error: exit 2
    for a bad setting, as for a wrong option, else 1; Ctrl-C ends it with 130, as a shell would say."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, loaded now; None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            return _missing(cmd_name, error)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for, after a warning of variables that are no settings."""
        for sentence in untold_unknown_settings():
            click.echo(f"Warning: {sentence}", err=True)
        try:
            with acting_as(COMMAND_LINE):
                return super().invoke(ctx)
        except CouponWorkersError as error:
            failure = _BadSetting if isinstance(error, SettingsError) else click.ClickException
            raise failure(" ".join(str(error).split())) from None
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(_INTERRUPTED)


def _missing(name: str, error: ImportError) -> click.Command:
    reason = f"cannot be loaded: {error}"

    @click.command(name, help=reason, context_settings={"ignore_unknown_options": True})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def missing(arguments: tuple[str, ...]) -> None:
        raise click.ClickException(f"{name} {reason}")

    return missing


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="coupon-workers")
def main() -> None:
    """Coupons for peak traffic: run it, look into it, check it.

    Settings come from COUPON_* variables; `coupon-workers env` prints those in force. Commands that need servers and
    find none named use those of the `up` that runs in COUPON_DATA_DIR.
    """


if __name__ == "__main__":
    main()
