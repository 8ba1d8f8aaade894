"""Whoever decides about held claims, or sweeps, as a process of its own, which dies at a named point by SIGKILL."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from coupon_workers.risk import review_desk
from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings, read_settings
from tests.support.code_crash import run_child

OPERATOR = "key-1"
TOLD = {"approve": "issued", "reject": "RISK_REJECTED", "sweep": "RISK_REJECTED"}
"""What becomes of a held claim, by what is done."""


def later(services: Services, **delta: int) -> Services:
    """The same, with a clock ahead."""
    return replace(services, clock=lambda: services.clock() + timedelta(**delta))


def act(services: Services, how: str, claim_id: int) -> None:
    """Approve or reject the claim, or sweep after its deadline."""
    acts: dict[str, Callable[[], Any]] = {
        "approve": lambda: review_desk.approve(services, claim_id, OPERATOR),
        "reject": lambda: review_desk.reject(services, claim_id, OPERATOR, "no"),
        "sweep": lambda: sweep_risk(later(services, hours=25)),
    }
    acts[how]()


def act_in_child(settings: Settings, how: str, claim_id: int, crash_at: str) -> int:
    """``act`` in a process of its own; its return code."""
    words = {"how": how, "claim_id": claim_id}
    return run_child("tests.support.risk_crash", settings, crash_at, words).returncode


if __name__ == "__main__":
    _words = json.loads(sys.argv[1])
    act(make_services(read_settings()), _words["how"], _words["claim_id"])
