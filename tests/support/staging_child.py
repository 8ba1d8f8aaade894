"""A process that stages one batch, as a worker does: it may be killed, and tells how much memory it took."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.settings import Settings, read_settings

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120


class Ended(NamedTuple):
    """How the process ended: its return code, and what it told when it came to its end."""

    returncode: int
    told: dict[str, Any] | None


def stage_in_child(settings: Settings, batch_id: int, crash_at: str | None = None) -> Ended:
    """Run it to its end. It tells ``status``, ``peak_mib``, and ``growth_mib`` since before it staged."""
    urls = {name: getattr(settings, name).get_secret_value() for name in ("database_url", "redis_url", "broker_url")}
    environment = os.environ | {f"COUPON_{name.upper()}": url for name, url in urls.items()}
    if crash_at:
        environment["COUPON_CRASH_AT"] = crash_at
    child = subprocess.run(
        [sys.executable, "-m", "tests.support.staging_child", str(batch_id)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    lines = child.stdout.splitlines()
    return Ended(child.returncode, json.loads(lines[-1]) if lines and child.returncode == 0 else None)


def peak_mib() -> float:
    """The most memory of this process so far, by its own account: not that of the one it was started from."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def _main() -> None:
    services = make_services(read_settings())
    before = peak_mib()
    status = stage_batch(services, int(sys.argv[1]))
    told = {"status": status, "peak_mib": peak_mib(), "growth_mib": peak_mib() - before}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    _main()
