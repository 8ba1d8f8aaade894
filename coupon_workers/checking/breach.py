"""A broken invariant: which, of what, what should be and what is."""

from __future__ import annotations

from dataclasses import dataclass

BREACH_LIMIT = 1_000
"""Breaches of one invariant that are listed, at most: a broken store must not fill the memory of its checker."""


@dataclass(frozen=True, slots=True, order=True)
class Breach:
    """``invariant`` names the rule (the module that checks it), ``subject`` the thing that breaks it."""

    invariant: str
    subject: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.subject}: expected {self.expected}, found {self.actual}"
