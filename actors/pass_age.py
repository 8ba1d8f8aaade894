"""How old the message for a pass may be: one fresh pass does the work of all the old ones."""

from __future__ import annotations

MAX_AGE_MS = 900_000
"""While no worker runs these messages pile up. The age is read off two hosts' clocks, of which one may be ten minutes
ahead: a shorter one would drop every message."""
