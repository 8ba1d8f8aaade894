"""Style and types, as `make lint` sees them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tidy.checkout import ROOT

TIMEOUT_S = 540


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "words", [("ruff", "check"), ("ruff", "format", "--check"), ("mypy",)], ids=["check", "format", "types"]
)
def test_the_checkout_is_clean(words: tuple[str, ...]) -> None:
    """Not one complaint."""
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr
