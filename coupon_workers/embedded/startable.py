"""What runs for as long as a block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Startable(ABC):
    """As a context: started at the beginning, stopped at the end, whatever happened meanwhile."""

    @abstractmethod
    def start(self) -> None:
        """Start, and wait until it is there."""

    @abstractmethod
    def stop(self) -> None:
        """Stop. Does nothing when it does not run."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
