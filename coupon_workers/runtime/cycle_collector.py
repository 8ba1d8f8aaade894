"""Python's collector of cycles, for processes that hold thousands of small objects for a moment.

It is due after so many new objects, however soon they go. As shipped a batch of a thousand claims makes it due six
times, and every hundredth time it goes through all that a process has: a fifth of what settling took Python.
"""

from __future__ import annotations

import gc

NEW_OBJECTS = 10_000
"""Two batches or so of claims; as cycles that are left behind, a few megabytes."""


def collect_seldom() -> None:
    """Go by new objects from now on, and never again through those that are there. Call it once modules are loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
