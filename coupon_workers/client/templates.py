"""Templates, and what waits for a second person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from coupon_workers.client.caller import Caller, given, segment
from coupon_workers.client.template_answer import (
    ApprovalAnswer,
    PreheatAnswer,
    RevocationAnswer,
    TemplateAnswer,
    TemplateStats,
)


class Templates:
    """Scope ``admin``; reading also ``storefront``. Each write takes an ``idempotency_key``, or makes one."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, body: Mapping[str, Any], *, idempotency_key: str | None = None) -> TemplateAnswer:
        """A draft; the API guide has the fields."""
        return cast("TemplateAnswer", self._caller.write("POST", _ALL, body, idempotency_key=idempotency_key))

    def every(self, *, status: str | None = None) -> Iterator[TemplateAnswer]:
        """All templates, newest first."""
        return self._caller.every(_ALL, {"status": status})

    def read(self, template_id: str) -> TemplateAnswer:
        """A template with its stock at this moment."""
        return cast("TemplateAnswer", self._caller.read(_one(template_id)))

    def change(
        self, template_id: str, changes: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> TemplateAnswer | ApprovalAnswer:
        """The changed template; or the request for approval, and nothing changed, where a second person is needed."""
        answer = self._caller.write("PATCH", _one(template_id), changes, idempotency_key=idempotency_key)
        return cast("TemplateAnswer | ApprovalAnswer", answer)

    def archive(self, template_id: str, *, idempotency_key: str | None = None) -> TemplateAnswer:
        """Put away a template that nobody can use any more."""
        answer = self._caller.write("DELETE", _one(template_id), idempotency_key=idempotency_key)
        return cast("TemplateAnswer", answer)

    def publish(self, template_id: str, *, idempotency_key: str | None = None) -> TemplateAnswer:
        """Open a draft, or hand it in for approval where that is needed."""
        return self._act(template_id, "publish", None, idempotency_key)

    def pause(self, template_id: str, *, idempotency_key: str | None = None) -> TemplateAnswer:
        """Stop claims at once."""
        return self._act(template_id, "pause", None, idempotency_key)

    def resume(self, template_id: str, *, idempotency_key: str | None = None) -> TemplateAnswer:
        """Go on by the clock."""
        return self._act(template_id, "resume", None, idempotency_key)

    def take_offline(self, template_id: str, *, idempotency_key: str | None = None) -> TemplateAnswer:
        """Stop claims and new locks for good."""
        return self._act(template_id, "offline", None, idempotency_key)

    def preheat(self, template_id: str, *, idempotency_key: str | None = None) -> PreheatAnswer:
        """Rebuild the gate from the database."""
        return cast("PreheatAnswer", self._act(template_id, "preheat", None, idempotency_key))

    def clone(self, template_id: str, *, idempotency_key: str | None = None) -> TemplateAnswer:
        """A new draft with the same fields."""
        return self._act(template_id, "clone", None, idempotency_key)

    def stats(self, template_id: str) -> TemplateStats:
        """Funnel and cost."""
        return cast("TemplateStats", self._caller.read(f"{_one(template_id)}/stats"))

    def approvals(self, *, state: str | None = None, template_id: str | None = None) -> Iterator[ApprovalAnswer]:
        """What waits for approval or was decided, newest first."""
        return self._caller.every("/v1/approvals", {"state": state, "template_id": template_id})

    def approve(
        self,
        template_id: str,
        *,
        approval_id: str | None = None,
        comment: str | None = None,
        idempotency_key: str | None = None,
    ) -> TemplateAnswer:
        """Do what was asked for. ``approval_id``: the request that was looked at."""
        body = given(approval_id=approval_id, comment=comment)
        return self._act(template_id, "approve", body, idempotency_key)

    def reject(
        self,
        template_id: str,
        comment: str,
        *,
        approval_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> TemplateAnswer:
        """Refuse what was asked for."""
        body = given(approval_id=approval_id, comment=comment)
        return self._act(template_id, "reject", body, idempotency_key)

    def withdraw(
        self,
        template_id: str,
        *,
        approval_id: str | None = None,
        comment: str | None = None,
        idempotency_key: str | None = None,
    ) -> TemplateAnswer:
        """Ask no longer."""
        body = given(approval_id=approval_id, comment=comment)
        return self._act(template_id, "withdraw", body, idempotency_key)

    def recall(self, template_id: str, reason: str, *, idempotency_key: str | None = None) -> RevocationAnswer:
        """Revoke every unused coupon, by a worker."""
        path, body = f"{_one(template_id)}/revoke", {"reason": reason}
        return cast("RevocationAnswer", self._caller.write("POST", path, body, idempotency_key=idempotency_key))

    def read_recall(self, template_id: str, revocation_id: str) -> RevocationAnswer:
        """How a recall stands."""
        path = f"{_one(template_id)}/revocations/{segment(revocation_id)}"
        return cast("RevocationAnswer", self._caller.read(path))

    def _act(
        self, template_id: str, action: str, body: Mapping[str, Any] | None, idempotency_key: str | None
    ) -> TemplateAnswer:
        path = f"{_one(template_id)}/{action}"
        return cast("TemplateAnswer", self._caller.write("POST", path, body, idempotency_key=idempotency_key))


_ALL = "/v1/templates"


def _one(template_id: str) -> str:
    return f"{_ALL}/{segment(template_id)}"
