"""Who acts, for the audit log: carried beside the calls, as the id of a request is in logs.

What an operator does passes through many use cases. Each is told what to do and by whose key; only its row of the log
wants the key's name and the request's id too. Whoever lets an operator in (``web/auth.py``, the command line) says who
it is, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operator:
    """``operator_id`` is the id of an API key, or says which program acts; ``name`` the key's name at that moment."""

    operator_id: str
    name: str | None = None
    request_id: str | None = None


COMMAND_LINE = Operator("command line")

SYSTEM = Operator("system")
"""No person: a worker, a scheduler."""

_ACTING: ContextVar[Operator] = ContextVar("acting_operator", default=SYSTEM)


def acting_operator() -> Operator:
    """Who acts in this thread."""
    return _ACTING.get()


@contextmanager
def acting_as(operator: Operator) -> Iterator[None]:
    """Have what is done meanwhile, in this thread, written down as done by ``operator``."""
    token = _ACTING.set(operator)
    try:
        yield
    finally:
        _ACTING.reset(token)
