"""The independent checker of FAULTS.md: a history and the stores in, the letters that are broken out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import redis
from sqlalchemy import Engine

from tests.support.history import Operation
from tests.support.history_answers import bad_refusals, lost_claims, unequal_answers
from tests.support.history_books import read_books
from tests.support.history_post import leaks, lost_messages
from tests.support.history_stores import illegal_flows, not_conserved, over_issued, over_limit

MOST_SHOWN = 5
"""Breaches of a letter that are named; the first ones tell."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything the checker may look at, after healing and draining.

    ``logs``: what was written during the load. ``secrets``: texts that may appear nowhere.
    """

    engine: Engine
    stock: redis.Redis
    broker: redis.Redis
    template_ids: Sequence[int]
    operations: Sequence[Operation]
    logs: Sequence[str] = ()
    secrets: Sequence[str] = field(default=())


def broken_letters(evidence: Evidence) -> dict[str, list[str]]:
    """The letters of FAULTS.md that do not hold, each with its first breaches; empty: all hold."""
    books = read_books(evidence.engine, evidence.stock, evidence.template_ids)
    operations = evidence.operations
    found: dict[str, Iterable[str]] = {
        "A": over_issued(books),
        "B": over_limit(books),
        "C": unequal_answers(operations, books),
        "D": lost_claims(operations, books),
        "E": not_conserved(books),
        "F": illegal_flows(books),
        "G": lost_messages(evidence.broker),
        "H": bad_refusals(operations),
        "I": leaks(operations, evidence.logs, evidence.secrets),
    }
    shown = {letter: list(islice(breaches, MOST_SHOWN)) for letter, breaches in found.items()}
    return {letter: breaches for letter, breaches in shown.items() if breaches}
