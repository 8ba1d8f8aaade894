"""CPU time of processes: what work costs, also when others keep the machine busy."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import psutil


class CpuMeter:
    """Counts from its making on what each process of ``pids`` spends, with its descendants, ended ones included.

    The kernel counts in ticks of 10 ms: a run of a second or more is told well enough.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self._began = {name: _spent_s(pid) for name, pid in pids.items()}

    def us_each(self, count: int) -> dict[str, float]:
        """Microseconds for each of ``count`` pieces of work, by ``<name>_us``."""
        return {
            f"{name}_us": (_spent_s(pid) - self._began[name]) * 1e6 / max(1, count) for name, pid in self._pids.items()
        }


def _spent_s(pid: int) -> float:
    root = psutil.Process(pid)
    return sum(_with_ended_children_s(process) for process in (root, *root.children(recursive=True)))


def _with_ended_children_s(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0
