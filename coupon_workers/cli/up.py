"""``coupon-workers up``: everything on this machine, until told to stop."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

import click

from coupon_workers.embedded.output import LogFolder, PrefixedOutput
from coupon_workers.embedded.procfile import read_procfile
from coupon_workers.embedded.running_system import RunningSystem
from coupon_workers.errors import CouponWorkersError
from coupon_workers.runtime.settings import read_settings

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Stop(BaseException):
    """Somebody wants us to stop. Not an ``Exception``, so that nothing on its way takes it for a failure."""


@click.command()
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
    data in COUPON_DATA_DIR. The logs of all processes go to standard error.
    """
    try:
        run_up(procfile, log_dir)
    except CouponWorkersError as error:
        raise click.ClickException(str(error)) from None


def run_up(procfile: Path | None = None, log_dir: Path | None = None) -> None:
    """Run everything the settings say, print the ready line, and return after SIGINT, SIGTERM or SIGHUP.

    Raises ``CouponWorkersError`` when it cannot be started.
    """
    for number in _STOP_SIGNALS:
        signal.signal(number, _raise_stop)
    try:
        system = _system(procfile, log_dir)
        try:
            system.start()
            print(f"ready {system.base_url}", flush=True)
            while True:
                signal.pause()
        finally:
            _ignore_signals()
            system.stop()
    except _Stop:
        return


def _system(procfile: Path | None, log_dir: Path | None) -> RunningSystem:
    settings = read_settings()
    return RunningSystem(
        settings.data_dir,
        host=settings.http_host,
        port=settings.http_port,
        procfile=read_procfile(procfile) if procfile else None,
        output=LogFolder(log_dir) if log_dir else PrefixedOutput(sys.stderr),
    )


def _raise_stop(number: int, frame: FrameType | None) -> None:
    _ignore_signals()  # the way out has a deadline of its own; a second Ctrl-C must not cut it short
    raise _Stop


def _ignore_signals() -> None:
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
