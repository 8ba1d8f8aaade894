"""Redeem codes: generated and fetched by operators, exchanged by storefronts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from coupon_workers.client.batch_answer import CodeAnswer, CodeBatchAnswer
from coupon_workers.client.caller import Caller, given, segment
from coupon_workers.client.exchange import Call
from coupon_workers.client.wallet_answer import ExchangeAnswer


class Codes:
    """Scope ``admin``; ``exchange`` is for ``storefront``."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def generate(
        self,
        template_id: str,
        quantity: int,
        *,
        length: int | None = None,
        prefix: str | None = None,
        channel: str | None = None,
        check_digit: bool | None = None,
        expires_at: str | None = None,
        idempotency_key: str | None = None,
    ) -> CodeBatchAnswer:
        """So many codes, made by a worker."""
        body = given(template_id=template_id, quantity=quantity, length=length, prefix=prefix, channel=channel)
        body |= given(check_digit=check_digit, expires_at=expires_at)
        return cast("CodeBatchAnswer", self._caller.write("POST", _ALL, body, idempotency_key=idempotency_key))

    def every(self, *, status: str | None = None, template_id: str | None = None) -> Iterator[CodeBatchAnswer]:
        """All batches of codes, newest first."""
        return self._caller.every(_ALL, {"status": status, "template_id": template_id})

    def read(self, code_batch_id: str) -> CodeBatchAnswer:
        """How a batch of codes stands."""
        return cast("CodeBatchAnswer", self._caller.read(_one(code_batch_id)))

    def fetch(self, code_batch_id: str) -> str:
        """The codes, a line each, once: the server deletes them when it has sent the last one. So this is the one call
        that is not sent again by itself; when no answer came, look at ``read`` before you fetch anew."""
        return self._caller.perform(Call("GET", f"{_one(code_batch_id)}/codes.csv")).text

    def revoke(self, code_batch_id: str, *, idempotency_key: str | None = None) -> CodeBatchAnswer:
        """End all codes of a batch that are not used."""
        answer = self._caller.write("POST", f"{_one(code_batch_id)}/revoke", idempotency_key=idempotency_key)
        return cast("CodeBatchAnswer", answer)

    def look_up(self, code: str) -> CodeAnswer:
        """What a code is, for a customer who reads it out."""
        return cast("CodeAnswer", self._caller.ask("/v1/codes/lookup", {"code": code}))

    def exchange(
        self,
        code: str,
        user_id: str,
        request_id: str,
        *,
        ip: str | None = None,
        device_id: str | None = None,
        channel: str | None = None,
    ) -> ExchangeAnswer:
        """A code for its coupon, once; whoever exchanged it gets his coupon again."""
        body = given(code=code, user_id=user_id, request_id=request_id, ip=ip, device_id=device_id, channel=channel)
        return cast("ExchangeAnswer", self._caller.write_numbered("/v1/codes/exchange", body, request_id))


_ALL = "/v1/code-batches"


def _one(code_batch_id: str) -> str:
    return f"{_ALL}/{segment(code_batch_id)}"
