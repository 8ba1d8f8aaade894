"""What one worker of a run does in one go: the tests of a file, in their order, and whole folders of some kinds."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/faults/", "tests/benchmarks/")
"""Each has one large installation, and its tests load the machine: two at once would only be in each other's way."""


class WorkerShares(LoadScopeScheduling):
    """Gives shares out in the order of the tests; the folder with the shortest ones comes last, so all end together."""

    def __init__(self, config: Any, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)
