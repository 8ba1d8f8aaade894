"""``coupon-workers up``: everything on this machine, until told to stop."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType

import click

from coupon_workers.embedded.output import LogFolder, PrefixedOutput
from coupon_workers.embedded.procfile import read_procfile
from coupon_workers.embedded.running_system import RunningSystem
from coupon_workers.errors import EmbeddedServerError
from coupon_workers.runtime.settings import PREFIX, Settings, read_settings

LOG_FORMAT = f"{PREFIX}LOG_FORMAT"
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HINTS = """
  the API's reference   {base_url}/docs
  a key                 coupon-workers keys create --name NAME --scope admin --scope storefront
  stop                  Ctrl-C; the data stay
"""


class _Stop(BaseException):
    """Somebody wants us to stop. Not an ``Exception``, so that nothing on its way takes it for a failure."""


@click.command(short_help="Run everything on this machine; Ctrl-C stops it.")
@click.option(
    "--procfile",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Run the processes of this file, in its folder, instead of the project's.",
)
@click.option("--log-dir", type=click.Path(path_type=Path, file_okay=False), help="A log file for each process, here.")
def up(procfile: Path | None, log_dir: Path | None) -> None:
    """Run servers, migration, web, workers and scheduler; Ctrl-C stops all.

    Prints one line, `ready http://HOST:PORT`, when every process answers. Servers whose address is set
    (COUPON_DATABASE_URL, COUPON_REDIS_URL, COUPON_BROKER_URL) are used as they are; the others are started, with their
    data in COUPON_DATA_DIR. The logs of all processes go to standard error: for people when that is a terminal and
    COUPON_LOG_FORMAT is unset, else as JSON.
    """
    try:
        run_up(procfile, log_dir)
    except EmbeddedServerError as error:
        raise click.ClickException(str(error)) from None  # in its own lines: it may quote the end of a log


def run_up(procfile: Path | None = None, log_dir: Path | None = None) -> None:
    """Run everything the settings say, print the ready line, and return after SIGINT, SIGTERM or SIGHUP (under nohup
    after the first two).

    Raises ``CouponWorkersError`` when it cannot be started.
    """
    settings = read_settings()

    def raise_stop(number: int, frame: FrameType | None) -> None:
        _ignore_signals()  # the way out has a deadline of its own; a second Ctrl-C must not cut it short
        _tell_stopping(settings.data_dir)
        raise _Stop

    for number in _STOP_SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # who ignores it was told to: nohup
            signal.signal(number, raise_stop)
    try:
        system = _system(settings, procfile, log_dir)
        try:
            system.start()
            if sys.stderr.isatty():
                click.echo(_HINTS.format(base_url=system.base_url), err=True)
            print(f"ready {system.base_url}", flush=True)  # last: whoever waits for it may stop us at once
            while True:
                signal.pause()
        finally:
            _ignore_signals()
            system.stop()
    except _Stop:
        return


def _system(settings: Settings, procfile: Path | None, log_dir: Path | None) -> RunningSystem:
    for_people = log_dir is None and sys.stderr.isatty() and "log_format" not in settings.model_fields_set
    return RunningSystem(
        settings.data_dir,
        host=settings.http_host,
        port=settings.http_port,
        overrides={LOG_FORMAT: "console"} if for_people else None,
        procfile=read_procfile(procfile) if procfile else None,
        output=LogFolder(log_dir) if log_dir else PrefixedOutput(sys.stderr),
    )


def _tell_stopping(data_dir: Path) -> None:
    """Past the buffers: a signal may have come in the middle of a line."""
    with suppress(OSError):
        os.write(2, f"stopping… (data kept in {data_dir.resolve()})\n".encode())


def _ignore_signals() -> None:
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
