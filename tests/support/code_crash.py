"""Whoever works on codes as a process of its own, which dies at a named point by SIGKILL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coupon_workers.codes.code_generation import run_generation
from coupon_workers.codes.exchange import Exchange, exchange_code
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.settings import Settings, read_settings
from tests.support.staging_child import peak_mib

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
_SECRETS = ("database_url", "redis_url", "broker_url", "code_pepper")


def in_child(settings: Settings, crash_at: str, **words: Any) -> tuple[int, float]:
    """Generate (``code_batch_id``, ``chunk``) or exchange (the fields of ``Exchange``): the return code, and by how
    many MiB the process has grown if it lived to tell."""
    done = run_child("tests.support.code_crash", settings, crash_at, words)
    lines = done.stdout.split()
    return done.returncode, float(lines[-1]) if done.returncode == 0 else 0.0


def run_child(
    module: str, settings: Settings, crash_at: str, words: Mapping[str, Any]
) -> subprocess.CompletedProcess[bytes]:
    """Run a module's own process to its end, or its death: ``words`` are its argument, as JSON."""
    given = {f"COUPON_{name.upper()}": getattr(settings, name).get_secret_value() for name in _SECRETS}
    return subprocess.run(
        [sys.executable, "-m", module, json.dumps(words)],
        cwd=ROOT,
        env=os.environ | given | {"COUPON_CRASH_AT": crash_at},
        stdout=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )


def _main() -> None:
    services, words = make_services(read_settings()), json.loads(sys.argv[1])
    before = peak_mib()
    if "code_batch_id" in words:
        run_generation(services, words["code_batch_id"], chunk=words["chunk"], turn_s=3_600)
    else:
        exchange_code(services, Exchange(**words))
    sys.stdout.write(f"\n{peak_mib() - before}\n")


if __name__ == "__main__":
    _main()
