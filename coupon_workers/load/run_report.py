"""A load run judged: what was sent, what became of it, and whether every rule held, ours and the client's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.report import Invariant, Verdict, check_all, invariants, judge
from coupon_workers.checking.told_claim import told_claims_ended
from coupon_workers.load.consistency import inconsistencies, told_claims
from coupon_workers.load.history import ClaimHistory
from coupon_workers.load.outcome_count import OutcomeCount, count_outcomes
from coupon_workers.load.tally import Tally, tally
from coupon_workers.runtime.services import Services

Begins = Callable[[Invariant], None]

_CLIENT_RULES = 3


@dataclass(frozen=True, slots=True)
class RunReport:
    """``verdicts`` are those of the stores, then those of the clients."""

    counts: Tally
    outcomes: OutcomeCount
    verdicts: tuple[Verdict, ...]
    facts: dict[str, int]

    @property
    def holds(self) -> bool:
        """Whether every rule held."""
        return all(verdict.holds for verdict in self.verdicts)


def rules_of_a_run() -> int:
    """How many rules ``report_run`` asks, without more."""
    return len(invariants()) + _CLIENT_RULES


def report_run(
    services: Services,
    history: ClaimHistory,
    expected: Mapping[int, int | None],
    since: datetime,
    *,
    more: Sequence[Invariant] = (),
    begins: Begins = lambda invariant: None,
) -> RunReport:
    """Judge a run whose queues are empty; ``begins`` is told each rule before it is asked.

    ``expected`` maps the run's templates to the coupons that must have been issued of each, None where that is open.
    ``since``: the gate's clock when the run began. ``more``: rules of what else was run. Raises ``StoreUnavailable``.
    """
    outcomes = count_outcomes(services, expected.keys(), since)
    stores = check_all(services, begins=begins)
    clients = []
    for invariant in (*_client_rules(history, expected, outcomes), *more):
        begins(invariant)
        clients.append(judge(invariant, services))
    return RunReport(tally(history), outcomes, (*stores.verdicts, *clients), stores.facts)


def _client_rules(
    history: ClaimHistory, expected: Mapping[int, int | None], outcomes: OutcomeCount
) -> tuple[Invariant, ...]:
    return (
        Invariant(
            "equal_answers",
            "equal requests, equal answers; refusals are 4xx or 503",
            lambda _: inconsistencies(history),
        ),
        Invariant(
            "told_claims_ended",
            "every claim a client was told of is issued or rejected",
            partial(told_claims_ended, told=told_claims(history)),
        ),
        Invariant(
            "as_expected", "issued = what the claims sent must come to", lambda _: _unexpected(expected, outcomes)
        ),
    )


def _unexpected(expected: Mapping[int, int | None], outcomes: OutcomeCount) -> list[Breach]:
    return [
        Breach("as_expected", f"template {template_id}", f"{count} issued", f"{outcomes.issued[template_id]}")
        for template_id, count in expected.items()
        if count is not None and outcomes.issued[template_id] != count
    ][:BREACH_LIMIT]
