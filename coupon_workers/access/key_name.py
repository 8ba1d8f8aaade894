"""The names of keys, for pages that tell who did what: the id alone tells nobody anything."""

from __future__ import annotations

import re

from sqlalchemy import Engine, select

from coupon_workers.runtime.database import transaction
from coupon_workers.schema import ApiKey

MOST_NAMES = 1_000
"""Names held at once; the one read first makes room. A shop has tens of keys."""

_KEY_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


class KeyNames:
    """What one process knows of them. A key is never called otherwise, so a name that was read once is right for good:
    a page asks PostgreSQL, by the primary key, only for keys that no page has shown yet. Threads may share it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, str] = {}

    def name_of(self, operator: str) -> str | None:
        """The name of the key with this id; None for an operator that is no key: a job, the command line.

        Raises ``StoreUnavailable``.
        """
        if operator in self._known or not _KEY_ID.fullmatch(operator):
            return self._known.get(operator)
        with transaction(self._engine) as connection:
            name = connection.execute(select(ApiKey.name).where(ApiKey.key_id == operator)).scalar_one_or_none()
        if name is not None:
            self._known[operator] = name
            while len(self._known) > MOST_NAMES:
                self._known.pop(next(iter(self._known)), None)
        return name
