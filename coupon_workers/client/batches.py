"""Campaign batches: a template given to an audience; and the tags that audiences are told by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, cast

import httpx

from coupon_workers.client.batch_answer import BatchAnswer, NewBatchAnswer, TagsAnswer
from coupon_workers.client.caller import Caller, given, keyed, segment
from coupon_workers.client.exchange import Call

Policy = Literal["all_or_nothing", "best_effort"]


class Batches:
    """Scope ``admin``. Each write takes an ``idempotency_key``, or makes one."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        template_id: str,
        name: str,
        file: bytes,
        *,
        file_name: str = "audience.csv",
        policy: Policy | None = None,
        start_at: str | None = None,
        idempotency_key: str | None = None,
    ) -> NewBatchAnswer:
        """For the users of a file: CSV with a column ``user_id``, JSONL or Parquet, of at most 64 MiB."""
        fields = given(template_id=template_id, name=name, policy=policy, start_at=start_at)
        form = httpx.Request("POST", "http://form", data=fields, files={"file": (file_name, file)})
        headers = {"Content-Type": form.headers["content-type"]}
        call = keyed(Call("POST", "/v1/batches", {}, headers, form.read()), idempotency_key)
        return cast("NewBatchAnswer", self._caller.perform(call).json())

    def create_for_tags(
        self,
        template_id: str,
        name: str,
        tags: str,
        *,
        policy: Policy | None = None,
        start_at: str | None = None,
        idempotency_key: str | None = None,
    ) -> NewBatchAnswer:
        """For the users that an expression means, as ``vip and not churned``."""
        body = given(template_id=template_id, name=name, tags=tags, policy=policy, start_at=start_at)
        answer = self._caller.write("POST", "/v1/batches", body, idempotency_key=idempotency_key)
        return cast("NewBatchAnswer", answer)

    def every(self, *, status: str | None = None, template_id: str | None = None) -> Iterator[BatchAnswer]:
        """All batches, newest first."""
        return self._caller.every("/v1/batches", {"status": status, "template_id": template_id})

    def read(self, batch_no: str) -> BatchAnswer:
        """How a batch stands."""
        return cast("BatchAnswer", self._caller.read(_one(batch_no)))

    def approve(self, batch_no: str, *, idempotency_key: str | None = None) -> BatchAnswer:
        """Let a batch start that needs it."""
        return self._act(batch_no, "approve", idempotency_key)

    def pause(self, batch_no: str, *, idempotency_key: str | None = None) -> BatchAnswer:
        """Issue nothing until it is resumed."""
        return self._act(batch_no, "pause", idempotency_key)

    def resume(self, batch_no: str, *, idempotency_key: str | None = None) -> BatchAnswer:
        """Go on where it stopped."""
        return self._act(batch_no, "resume", idempotency_key)

    def cancel(self, batch_no: str, *, idempotency_key: str | None = None) -> BatchAnswer:
        """End it for good."""
        return self._act(batch_no, "cancel", idempotency_key)

    def failures_csv(self, batch_no: str) -> str:
        """The rows without a coupon, as CSV."""
        return self._caller.read_text(f"{_one(batch_no)}/failures.csv")

    def tags(self, user_id: str) -> TagsAnswer:
        """A user's tags."""
        return cast("TagsAnswer", self._caller.read(_tags(user_id)))

    def set_tags(self, user_id: str, tags: Sequence[str], *, idempotency_key: str | None = None) -> TagsAnswer:
        """These, and no other."""
        body = {"tags": list(tags)}
        return cast("TagsAnswer", self._caller.write("PUT", _tags(user_id), body, idempotency_key=idempotency_key))

    def _act(self, batch_no: str, action: str, idempotency_key: str | None) -> BatchAnswer:
        answer = self._caller.write("POST", f"{_one(batch_no)}/{action}", idempotency_key=idempotency_key)
        return cast("BatchAnswer", answer)


def _one(batch_no: str) -> str:
    return f"/v1/batches/{segment(batch_no)}"


def _tags(user_id: str) -> str:
    return f"/v1/users/{segment(user_id)}/tags"
