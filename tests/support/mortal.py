"""Processes that a broken-off run of the tests leaves none of."""

from __future__ import annotations

import os
import signal
import sys

from coupon_workers.embedded import launcher


def mortal(*command: str) -> list[str]:
    """``command``, which gets SIGTERM when the thread that starts it ends, even by ``kill -9`` (Linux).

    It keeps its number and its exit code: the launcher becomes the command.
    """
    nobody = ("-", "-")
    return [
        *(sys.executable, "-I", "-S", launcher.__file__),
        *(str(int(signal.SIGTERM)), str(os.getpid()), *nobody),
        *command,
    ]
