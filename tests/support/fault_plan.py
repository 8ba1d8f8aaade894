"""What the clients of a load want: seeded, with deliberate duplicates and wrong bodies (FAULTS.md, the harness)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

DUPLICATE_SHARE = 0.20
WRONG_SHARE = 0.05
STATUS_SHARE = 0.05
DEAF_SHARE = 0.01
"""Parts of all operations: the same request again, a body that breaks the contract, a look at an earlier claim, and
claims whose client hangs up before it hears the answer."""

_LOOK_BACK = 40
"""A duplicate repeats one of this many last requests of any client: some are still under way."""

_WRONG: Sequence[dict[str, Any]] = (
    {"user_id": None},
    {"user_id": "a b"},
    {"user_id": "nul\x00"},
    {"user_id": "half \ud800"},
    {"request_id": ""},
    {"request_id": "x" * 129},
    {"request_id": ["r"]},
    {"template_id": -1},
    {"template_id": "18446744073709551616"},
    {"template_id": 1.5},
    {"surprise": True},
    {"channel": {"app": 1}},
)
"""Each breaks the contract in one place."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A template and its weight among all claims."""

    template_id: str
    weight: int


@dataclass(frozen=True, slots=True)
class Step:
    """One thing a client does: ``body`` of a claim, or nothing for a look at one of its earlier claims.

    ``deaf``: the client hangs up instead of hearing the answer.
    """

    name: Literal["claim", "wrong", "status"]
    body: dict[str, Any]
    deaf: bool = False


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Endless steps for each of ``clients`` clients; the same ``seed`` gives the same steps.

    What request ``number`` of a client is depends on nothing else, so that any client can repeat any other's.
    """

    seed: int
    clients: int
    users: int
    wanted: Sequence[Wanted]
    prefix: str

    def steps(self, client: int) -> Iterator[Step]:
        """What one client does."""
        draw = random.Random(f"{self.seed}/{client}")
        number = 0
        while True:
            dice = draw.random()
            if dice < WRONG_SHARE:
                yield Step("wrong", self._request(client, number) | draw.choice(_WRONG))
            elif dice < WRONG_SHARE + STATUS_SHARE:
                yield Step("status", {})
            elif dice < WRONG_SHARE + STATUS_SHARE + DUPLICATE_SHARE and number:
                earlier = max(0, number - 1 - draw.randrange(_LOOK_BACK))
                yield Step("claim", self._request(draw.randrange(self.clients), earlier))
            else:
                yield Step("claim", self._request(client, number), deaf=draw.random() < DEAF_SHARE)
                number += 1

    def _request(self, client: int, number: int) -> dict[str, Any]:
        draw = random.Random(f"{self.seed}/{client}/{number}")
        template = draw.choices(self.wanted, [wanted.weight for wanted in self.wanted])[0]
        user = f"{self.prefix}-u{draw.randrange(self.users)}"
        return {"template_id": template.template_id, "user_id": user, "request_id": f"{self.prefix}-{client}-{number}"}
