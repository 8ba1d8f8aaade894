"""The names of the tasks and how to send one. A producer names a task; it never imports the actor (DESIGN 4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Queue(StrEnum):
    """A queue each for work that must not wait behind the other."""

    SETTLE = "settle"
    CARE = "care"


@dataclass(frozen=True, slots=True)
class Task:
    """A message: the actor's name, its queue, its arguments (JSON values)."""

    name: str
    queue: Queue
    args: tuple[int | str, ...] = ()


class Post(Protocol):
    """Whatever takes a task to the workers."""

    def send(self, task: Task) -> None:
        """Enqueue ``task``. Raises ``StoreUnavailable`` when the broker did not take it."""


def settle_claims(template_id: int, bucket: int) -> Task:
    """The doorbell: drain the pending claims of a template's bucket."""
    return Task("settle_claims", Queue.SETTLE, (template_id, bucket))


def preheat_template(template_id: int) -> Task:
    """Rebuild a template's keys in Redis from PostgreSQL."""
    return Task("preheat_template", Queue.CARE, (template_id,))


def sweep_gates() -> Task:
    """Ring forgotten bells, warm cold templates, bring late changes of templates to Redis."""
    return Task("sweep_gates", Queue.CARE)


def prune_history() -> Task:
    """Delete job runs and idempotency rows past their keeping time, and the gates of templates long over."""
    return Task("prune_history", Queue.CARE)
