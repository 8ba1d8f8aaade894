"""Named points at which a fault test may kill the process: ``COUPON_CRASH_AT=web.after_script:3``.

The number says at which pass (1: the first). Outside fault tests the setting is unset and a point costs one test.
"""

from __future__ import annotations

import os
import signal
from itertools import count

_PASSES = count(1)
_TARGET, _, _NTH = (os.environ.get("COUPON_CRASH_AT") or "").partition(":")


def crash_point(name: str) -> None:
    """Die here by SIGKILL, as a power cut would, if a test asked for it by this name."""
    if name == _TARGET and next(_PASSES) == int(_NTH or 1):
        os.kill(os.getpid(), signal.SIGKILL)
