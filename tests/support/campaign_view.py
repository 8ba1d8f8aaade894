"""What the tables hold of a template's batches, in the words of their model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine, text

from tests.support.campaign import Campaign

_TABLES = (
    "coupon_flow",
    "coupon",
    "outbox",
    "claim_rejection",
    "batch_failure",
    "audience_member",
    "issue_shard",
    "issue_batch",
    "coupon_template",
)


def empty_tables(engine: Engine) -> None:
    """Faster than TRUNCATE while there is little in them."""
    with engine.begin() as connection:
        for table in _TABLES:
            connection.execute(text(f"DELETE FROM {table}"))


def real_view(campaigns: Sequence[Campaign]) -> dict[str, Any]:
    """See ``CampaignModel.view``; a batch's counts must be those of its rows."""
    sale = campaigns[0].sale
    books = sale.books
    return {
        "batches": [_batch(campaign) for campaign in campaigns],
        "claimed": [row[0] for row in sale.rows("SELECT user_id FROM coupon WHERE source = 'claim' ORDER BY 1")],
        "books": tuple(books[f"{name}_quantity"] for name in ("issued", "reserved", "granted", "rejected")),
    }


def _batch(campaign: Campaign) -> tuple[Any, ...]:
    books, owners, failures = campaign.books, campaign.owners(), sorted(campaign.failures())
    assert (len(owners), len(failures)) == (books["issued_count"], books["refused_count"])
    cursors = campaign.sale.rows(f"SELECT cursor FROM issue_shard WHERE batch_id = {campaign.batch_id} ORDER BY shard")
    return (books["status"], [row[0] for row in cursors], owners, failures, books["left_quantity"])
