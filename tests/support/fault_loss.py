"""What a Redis that forgot something leaves behind: claims that nobody knows, units that are nowhere."""

from __future__ import annotations

from tests.support.fault_campaign import Campaign
from tests.support.history import Operation
from tests.support.history_books import read_books
from tests.support.history_stores import not_conserved


def gone_claims(campaign: Campaign) -> list[Operation]:
    """Answers that named a claim which the database never saw: the first of each."""
    ends = read_books(campaign.engine, campaign.stock, campaign.template_ids).ends
    first: dict[int, Operation] = {}
    for operation in campaign.operations():
        if operation.claim_id and operation.claim_id not in ends:
            first.setdefault(operation.claim_id, operation)
    return list(first.values())


def broken_books(campaign: Campaign) -> list[str]:
    """Units that are nowhere, or in two places."""
    return list(not_conserved(read_books(campaign.engine, campaign.stock, campaign.template_ids)))
