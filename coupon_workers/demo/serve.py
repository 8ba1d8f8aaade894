"""``demo --serve``: a shop with data in it and some traffic, for as long as somebody looks at it."""

from __future__ import annotations

import secrets
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType

import click

from coupon_workers.access.api_key import create_key
from coupon_workers.client.client import CouponClient
from coupon_workers.demo.demo_system import HOST, demo_settings, demo_system
from coupon_workers.demo.light_traffic import LightTraffic
from coupon_workers.demo.sown_shop import STEPS, VISITOR, SownShop, sow
from coupon_workers.demo.stage import Stage
from coupon_workers.load.http_request import Address
from coupon_workers.load.progress_bar import ProgressBar
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.structured_log import configure_logs

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_GUIDE = """
  the console     {base_url}/console
    its key       {key}
    a second one  {second}   (approves what the first has made)
  the shop        {base_url}/shop   (be `{visitor}`, or anybody)
    codes         {codes}
  the reference   {base_url}/docs
  the rules       COUPON_DATA_DIR={folder} {command} check

  What to look at in the console:
    Live view       {base_url}/console/live/{busiest}   claims come in waves
    Templates       active, paused, offline, of tomorrow, a draft, one that waits for approval
    Findings        of {closed}: the order centre's statement has one order less, one amount more, one unheard of
    Daily closes    {closed}, to the last unit
    Dead letters    a message that no worker knows
    Held claims     by the rule accounts_of_address: an office, and a farm of accounts
    Batches, codes, lotteries, ledger, audit log: something in each

  Ctrl-C ends it.{kept}
"""


class Stopped(BaseException):
    """Somebody wants it to end. Not an ``Exception``, so that nothing on its way takes it for a failure."""


def serve_demo(folder: Path, *, port: int, seed: int, keep: bool) -> None:
    """Serve it with data and logs in ``folder``; returns after SIGINT, SIGTERM or SIGHUP (under nohup after the first
    two), when nothing runs any more.

    ``port`` 0 takes a free one. Raises ``CouponWorkersError``, ``ClientError`` when it cannot be started.
    """
    for number in _STOP_SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # who ignores it was told to: nohup
            signal.signal(number, _stop)
    try:
        with demo_system(folder, port=port) as system:
            settings = demo_settings(system)
            configure_logs(settings)
            services = make_services(settings)
            name = f"demo-{secrets.token_hex(4)}"
            key = create_key(services.engine, name="demo", scopes=["admin", "storefront", "orders", "ops"]).key
            address = Address(HOST, settings.http_port, key)
            with CouponClient(system.base_url, key) as client, ProgressBar() as bar:
                stage = Stage(services, client, name, seed, 1, utc_now())
                sown = sow(stage, address, bar.counts_up("sowing", STEPS))
            operator, second = (
                create_key(services.engine, name=who, scopes=["admin", "ops", "orders"]).key
                for who in ("operator", "second person")
            )
            click.echo(_guide(system.base_url, operator, second, sown, folder.resolve(), keep=keep))
            click.echo(f"ready {system.base_url}")  # last: whoever waits for it may stop us at once
            LightTraffic(services, address, sown.live, run=name, seed=seed).go_on()
    except Stopped:
        return


def _guide(base_url: str, key: str, second: str, sown: SownShop, folder: Path, *, keep: bool) -> str:
    return _GUIDE.format(
        base_url=base_url,
        key=key,
        second=second,
        visitor=VISITOR,
        codes="  ".join(sown.codes[:3]),
        folder=shlex.quote(str(folder)),
        command=own_command(),
        busiest=sown.live[0],
        closed=sown.closed,
        kept=f" The data stay in {folder}." if keep else " Nothing is left then.",
    )


def own_command() -> str:
    """What to type for another command of ours: as this one was called, be it on the path or not."""
    module = sys.modules["__main__"].__spec__  # of a module that runs by ``python -m``; a script has none
    return shlex.quote(sys.argv[0]) if module is None else shlex.join([sys.executable, "-m", module.name])


def _stop(number: int, frame: FrameType | None) -> None:
    for each in _STOP_SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # the way out has a deadline of its own; a second Ctrl-C must not cut it
    click.echo("\nstopping…", err=True)
    raise Stopped
