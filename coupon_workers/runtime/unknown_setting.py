"""``COUPON_*`` variables that no setting reads: a typo there would otherwise pass in silence."""

from __future__ import annotations

import os
from difflib import get_close_matches

from coupon_workers.runtime.settings import PREFIX, Settings

_TOLD = "_COUPON_UNKNOWN_TOLD"
"""The names that were told already, in the environment, so that the processes we start do not tell them again."""


def untold_unknown_settings() -> list[str]:
    """A sentence for each variable that is no setting, with the one that may be meant; the next call knows they were
    told, and so do our child processes."""
    known = [f"{PREFIX}{field.upper()}" for field in Settings.model_fields]
    told = os.environ.get(_TOLD, "").split()
    unknown = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known)
    new = [name for name in unknown if name not in told]
    if new:
        os.environ[_TOLD] = " ".join([*told, *new])
    return [_sentence(name, known) for name in new]


def _sentence(name: str, known: list[str]) -> str:
    meant = get_close_matches(name.upper(), known, n=1, cutoff=0.8)
    return f"unknown setting {name}" + (f"; is {meant[0]} meant?" if meant else "")
