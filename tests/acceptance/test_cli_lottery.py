"""``coupon-workers lottery`` against the run's servers."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from coupon_workers.cli.main import main
from coupon_workers.runtime.services import Services
from tests.support.lottery import Fair, coupon_prize, open_lottery
from tests.support.sale import assert_sound, open_sale

_NAMES = ("database_url", "redis_url", "broker_url", "code_pepper")


def run(fair: Fair, command: str, *words: str) -> Result:
    """Run a command of ``coupon-workers lottery`` on the lottery."""
    settings = fair.services.settings
    env = {f"COUPON_{name.upper()}": getattr(settings, name).get_secret_value() for name in _NAMES}
    return CliRunner().invoke(main, ("lottery", command, str(fair.lottery_id), *words), env=env)


def test_a_lottery_is_shown_paused_resumed_and_ended(services: Services) -> None:
    """Each command says how it stands then; each change is in the audit log."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 4)])
    fair.draw("ann")
    fair.drain()

    shown, told = run(fair, "show"), json.loads(run(fair, "show", "--json").stdout)
    moved = [run(fair, command) for command in ("pause", "resume", "end")]
    again = run(fair, "pause")

    assert "1. 20 off: 1 of 4 drawn, 3 left; 100.0000% of draws, meant 100.0000%" in shown.output
    assert (str(fair.lottery_id), "active") == (told["lottery_id"], told["status"])
    assert [0, 0, 0] == [each.exit_code for each in moved]
    assert ["paused", "active", "ended"] == [each.stdout.split()[3].rstrip(":") for each in moved]
    assert (1, "cannot be paused" in again.output) == (again.exit_code, True)
    assert 9 == sale.stock
    actions = [action for (action,) in fair.rows("SELECT action FROM audit_log ORDER BY audit_id")]
    assert ["lottery.pause", "lottery.resume", "lottery.end"] == actions[-3:]
    assert_sound(services)
