"""Audiences of hundreds of thousands for tests, made by one statement."""

from __future__ import annotations

from sqlalchemy import text

from tests.support.campaign import Campaign, plan_campaign
from tests.support.sale import Sale

_MEMBERS = text("""
    INSERT INTO audience_member (batch_id, shard, member_no, user_id, row_no)
    SELECT :batch_id, n % :shards, n / :shards + 1, :prefix || n, n + 2 FROM generate_series(0, :people - 1) AS n""")
_SHARDS = text("""
    UPDATE issue_shard s SET member_count = m.members
      FROM (SELECT shard, count(*) AS members FROM audience_member WHERE batch_id = :batch_id GROUP BY shard) AS m
     WHERE s.batch_id = :batch_id AND s.shard = m.shard""")


def plan_large_campaign(sale: Sale, people: int, *, shards: int, prefix: str = "u") -> Campaign:
    """A batch that is ready, for the users ``<prefix>0`` to ``<prefix><people - 1>``, dealt out in turn."""
    campaign = plan_campaign(sale, [], shards=shards, row_count=people, audience_count=people)
    named = {"batch_id": campaign.batch_id, "people": people, "shards": shards, "prefix": prefix}
    with sale.services.engine.begin() as connection:
        connection.execute(_MEMBERS, named)
        connection.execute(_SHARDS, named)
    return campaign
