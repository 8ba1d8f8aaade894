"""Risk control: policies, lists, scores, held claims and verdicts, for operators; asking for scores, for storefronts.

Answers are the dictionaries of the reference at ``/docs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from coupon_workers.client.caller import Caller, given, segment

Answer = dict[str, Any]
ListName = Literal["allow", "block"]


class Risk:
    """Scope ``admin``; ``ask_scores`` is for ``storefront``. Each write takes an ``idempotency_key``, or makes one."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def put_policy(
        self, name: str, body: Mapping[str, Any], *, if_version: int | None = None, idempotency_key: str | None = None
    ) -> Answer:
        """The next version of a policy; the API guide has the fields. ``if_version``: only over that one, 0: new."""
        query = "" if if_version is None else f"?if_version={if_version}"
        return self._write("PUT", f"{_policy(name)}{query}", body, idempotency_key)

    def policy(self, name: str) -> Answer:
        """The version in force."""
        return cast("Answer", self._caller.read(_policy(name)))

    def policies(self) -> Iterator[Answer]:
        """Those in force, by name."""
        return self._caller.every("/v1/risk-policies")

    def policy_versions(self, name: str) -> Iterator[Answer]:
        """Every version there was, newest first."""
        return self._caller.every(f"{_policy(name)}/versions")

    def policy_effect(self, name: str) -> Answer:
        """How often each rule fired, and what rules in shadow would have done."""
        return cast("Answer", self._caller.read(f"{_policy(name)}/effect"))

    def delete_policy(self, name: str, *, idempotency_key: str | None = None) -> Answer:
        """Take a policy away that no template names."""
        return self._write("DELETE", _policy(name), None, idempotency_key)

    def put_entry(
        self,
        name: ListName,
        dimension: str,
        value: str,
        *,
        expires_at: str | None = None,
        comment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Put a device, an address or a user on a list."""
        body = given(dimension=dimension, value=value, expires_at=expires_at, comment=comment)
        return self._write("PUT", f"/v1/risk-lists/{name}", body, idempotency_key)

    def entries(self, name: ListName, *, dimension: str | None = None, value: str | None = None) -> Iterator[Answer]:
        """Who is on a list; ``value``: only those that begin so."""
        return self._caller.every(f"/v1/risk-lists/{name}", {"dimension": dimension, "value": value})

    def delete_entry(self, name: ListName, dimension: str, value: str, *, idempotency_key: str | None = None) -> Answer:
        """Take it off the list; the entry as it was."""
        query = f"dimension={segment(dimension)}&value={segment(value)}"
        return self._write("DELETE", f"/v1/risk-lists/{name}?{query}", None, idempotency_key)

    def put_score(
        self, user_id: str, score: int, *, expires_at: str | None = None, idempotency_key: str | None = None
    ) -> Answer:
        """Set a user's score, 0 to 1000."""
        body = given(score=score, expires_at=expires_at)
        return self._write("PUT", f"/v1/risk-scores/{segment(user_id)}", body, idempotency_key)

    def score(self, user_id: str) -> Answer:
        """The last score known of a user."""
        return cast("Answer", self._caller.read(f"/v1/risk-scores/{segment(user_id)}"))

    def ask_scores(self, user_ids: Sequence[str], *, idempotency_key: str | None = None) -> Answer:
        """Have the shop's scorer look at users, ahead of a sale."""
        return self._write("POST", "/v1/risk-scores", {"user_ids": list(user_ids)}, idempotency_key)

    def reviews(self, *, state: str | None = None, template_id: str | None = None) -> Iterator[Answer]:
        """Claims that are or were held, newest first."""
        return self._caller.every("/v1/risk-reviews", {"state": state, "template_id": template_id})

    def approve(self, claim_id: str, *, comment: str | None = None, idempotency_key: str | None = None) -> Answer:
        """Have a held claim settled."""
        return self._write("POST", f"{_review(claim_id)}/approve", given(comment=comment), idempotency_key)

    def reject(self, claim_id: str, comment: str, *, idempotency_key: str | None = None) -> Answer:
        """Reject a held claim."""
        return self._write("POST", f"{_review(claim_id)}/reject", {"comment": comment}, idempotency_key)

    def verdicts(
        self, *, template_id: str | None = None, user_id: str | None = None, rule: str | None = None
    ) -> Iterator[Answer]:
        """Rules that fired, newest first."""
        narrowed = {"template_id": template_id, "user_id": user_id, "rule": rule}
        return self._caller.every("/v1/risk-verdicts", narrowed)

    def _write(self, method: str, path: str, body: Mapping[str, Any] | None, idempotency_key: str | None) -> Answer:
        return cast("Answer", self._caller.write(method, path, body, idempotency_key=idempotency_key))


def _policy(name: str) -> str:
    return f"/v1/risk-policies/{segment(name)}"


def _review(claim_id: str) -> str:
    return f"/v1/risk-reviews/{segment(claim_id)}"
