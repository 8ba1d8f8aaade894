"""A sale in this process, told to the checker like a load over HTTP: for experiments that break our own guards."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha1
from pathlib import Path

import redis

from coupon_workers.claiming.gate import Decision
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.lua_script import LuaScript
from tests.support.history import History, read_history
from tests.support.history_checker import Evidence, broken_letters
from tests.support.sale import Sale

SECRET = "cw_0123456789abcdef_a-key-that-nobody-may-see"


class HistoryShop:
    """Claims of ``sale``, each with its two lines of history in ``path``."""

    def __init__(self, sale: Sale, broker: redis.Redis, path: Path) -> None:
        self.sale = sale
        self.history = History(path)
        self.logs = ["nothing to see"]
        self.broker = broker

    def claim(self, user: str, request: str, ask: Callable[[], Decision | None] | None = None) -> Decision | None:
        """Claim as a client does; ``ask`` instead of the gate, None from it: no answer was heard."""
        body = {"template_id": str(self.sale.template_id), "user_id": user, "request_id": request}
        number = self.history.sends("claim", body)
        decision = ask() if ask else self.sale.claim(user, request)
        if decision is None:
            self.history.hears(number, 0, None, {})
        elif decision.outcome in (ClaimOutcome.ACCEPTED, ClaimOutcome.REPLAYED):
            state = decision.state if decision.state in ("queued", "issued") else "rejected"
            status = 202 if decision.outcome is ClaimOutcome.ACCEPTED else 200
            self.history.hears(number, status, {"claim_id": str(decision.claim_id), "status": state}, {})
        else:
            self.history.hears(number, 409, {"code": decision.outcome.value}, {})
        return decision

    def broken_letters(self) -> str:
        """The letters that the checker calls broken, in order."""
        services = self.sale.services
        evidence = Evidence(
            services.engine,
            services.redis,
            self.broker,
            [self.sale.template_id],
            read_history(self.history.path),
            self.logs,
            (SECRET,),
        )
        return "".join(sorted(broken_letters(evidence)))


def broken_script(name: str, *changes: tuple[str, str]) -> LuaScript:
    """A copy of ``lua/<name>.lua`` in which texts, each of which must be there, are replaced by others."""
    script = LuaScript(name)
    for old, new in changes:
        assert script.source.count(old) == 1, f"{name}.lua: {old!r}"
        script.source = script.source.replace(old, new)
    script.sha = sha1(script.source.encode(), usedforsecurity=False).hexdigest()
    return script


OpenShop = Callable[..., HistoryShop]
"""The fixture of ``tests/faults``: columns of the template in, a shop with its sale out."""
