"""A pause in the middle of a sale: an operator's two calls among the claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coupon_workers.load.admin_call import AdminCall, code_of
from coupon_workers.load.claim_call import ClaimCall
from coupon_workers.load.http_answer import Answer


class PauseWindow:
    """Pauses ``template_id`` after ``after`` claims and resumes it at least ``length`` claims later.

    The resume is sent only when the pause has been answered: a pause whose answer was lost and that is sent again
    must not come after it. Both are safe to send again by their nature and carry no ``Idempotency-Key``: a front that
    dies with such a key in hand holds it for a minute.
    """

    def __init__(self, template_id: str, *, after: int, length: int) -> None:
        self._pause = AdminCall("POST", f"/v1/templates/{template_id}/pause")
        self._resume = AdminCall("POST", f"/v1/templates/{template_id}/resume")
        self._after = after
        self._length = length
        self.paused = False
        self.resumed = False

    def among(self, claims: Iterable[ClaimCall]) -> Iterator[ClaimCall | AdminCall]:
        """``claims`` with the two calls in their places, the second at the latest at the end."""
        since_pause: int | None = None
        resume_sent = False
        for number, claim in enumerate(claims):
            if number == self._after:
                since_pause = 0
                yield self._pause
            elif since_pause is not None:
                since_pause += 1
                if not resume_sent and self.paused and since_pause >= self._length:
                    resume_sent = True
                    yield self._resume
            yield claim

    def hear(self, call: AdminCall, answer: Answer | None) -> None:
        """Take note of the end of a call. Raises ``UnexpectedAnswer`` unless it did what it should, now or before."""
        done_before = call is self._resume and code_of(answer) == "INVALID_STATUS"
        if not done_before:
            call.result(answer)
        if call is self._pause:
            self.paused = True
        elif call is self._resume:
            self.resumed = True

    @property
    def last_calls(self) -> list[AdminCall]:
        """What is left to send when the claims have ended."""
        return [self._resume] if self.paused and not self.resumed else []
