"""What a load sends: seeded, so that a run can be had again, with the repeats and retries of real clients."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coupon_workers.load.claim_call import ClaimCall, ClaimKind

_RECENT = 512
"""A retry repeats one of this many last requests: some of them are still under way, most were just answered."""


@dataclass(frozen=True, slots=True)
class TemplateShare:
    """A template and its weight among all calls."""

    template_id: str
    weight: int


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """``claims`` calls by ``users`` users.

    The shares are parts of all calls, between 0 and 1: ``repeat_share`` by a user who claimed that template before,
    ``retry_share`` the same request again, ``wrong_share`` bodies that break the contract. Iterating twice gives the
    same calls; ``prefix`` keeps the requests of one run apart from those of another.
    """

    seed: int
    claims: int
    users: int
    templates: Sequence[TemplateShare]
    repeat_share: float = 0.1
    retry_share: float = 0.1
    wrong_share: float = 0.0
    prefix: str = "r"

    def __iter__(self) -> Iterator[ClaimCall]:
        draw = random.Random(self.seed)
        weights = [share.weight for share in self.templates]
        recent: list[ClaimCall] = []
        for number in range(self.claims):
            call = self._call(draw, weights, recent, f"{self.prefix}-{number}")
            if call.kind in (ClaimKind.FIRST, ClaimKind.REPEAT):
                _remember(recent, call, number)
            yield call

    def _call(self, draw: random.Random, weights: list[int], recent: list[ClaimCall], request_id: str) -> ClaimCall:
        dice = draw.random()
        if recent and dice < self.retry_share:
            return draw.choice(recent)._replace(kind=ClaimKind.RETRY)
        if recent and dice < self.retry_share + self.repeat_share:
            earlier = draw.choice(recent)
            return earlier._replace(request_id=request_id, kind=ClaimKind.REPEAT)
        template = draw.choices(self.templates, weights)[0]
        user_id = f"u{draw.randrange(self.users)}"
        wrong = dice >= 1 - self.wrong_share
        return ClaimCall(template.template_id, user_id, request_id, ClaimKind.WRONG if wrong else ClaimKind.FIRST)


def _remember(recent: list[ClaimCall], call: ClaimCall, number: int) -> None:
    if len(recent) < _RECENT:
        recent.append(call)
    else:
        recent[number % _RECENT] = call
