"""Holding claims for review: a row each, their units set aside in the template's books, as part of a settling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.claiming.verdict import Verdict
from coupon_workers.risk.policy import DEFAULT_REVIEW_S
from coupon_workers.risk.policy_row import find_policy
from coupon_workers.runtime.array_literal import numbers, texts

_HOLD = text("""
    WITH held AS (
        INSERT INTO risk_review (claim_id, template_id, user_id, request_id, claim_seq, day, epoch, channel,
                                 face_value_minor, claimed_at, device_id, ip, address_hash, rule, held_at, deadline_at)
        SELECT claim_id, :template_id, user_id, request_id, claim_seq, day, epoch, NULLIF(channel, ''), face_value,
               timestamptz 'epoch' + claimed_ms * interval '1 ms', NULLIF(device_id, ''), NULLIF(ip, ''),
               NULLIF(address_hash, ''), rule, now(), now() + :review_s * interval '1 s'
          FROM unnest(CAST(:claim_ids AS bigint[]), CAST(:users AS text[]), CAST(:requests AS text[]),
                      CAST(:seqs AS bigint[]), CAST(:days AS text[]), CAST(:epochs AS bigint[]),
                      CAST(:channels AS text[]), CAST(:values AS bigint[]), CAST(:claimed AS bigint[]),
                      CAST(:devices AS text[]), CAST(:ips AS text[]), CAST(:addresses AS text[]),
                      CAST(:rules AS text[]))
            AS e(claim_id, user_id, request_id, claim_seq, day, epoch, channel, face_value, claimed_ms, device_id, ip,
                 address_hash, rule)
        RETURNING 1
    )
    UPDATE coupon_template
       SET reserved_quantity = reserved_quantity + counted.n, held_quantity = held_quantity + counted.n
      FROM (SELECT count(*) AS n FROM held) AS counted WHERE template_id = :template_id
""")


def write_held(connection: Connection, template: dict[str, Any], verdicts: Sequence[Verdict]) -> None:
    """Hold the claims until the policy's deadline; the caller holds the template, and has found room.

    A claim whose face value is gone from the pool is held without, and draws when it is issued.
    """
    policy = find_policy(connection, template["risk_policy"]) if template["risk_policy"] else None
    claims = [verdict.claim for verdict in verdicts]
    connection.execute(
        _HOLD,
        {
            "template_id": template["template_id"],
            "review_s": policy.review_s if policy else DEFAULT_REVIEW_S,
            "claim_ids": numbers(claim.claim_id for claim in claims),
            "users": texts(claim.user_id for claim in claims),
            "requests": texts(claim.request_id for claim in claims),
            "seqs": numbers(verdict.claim_seq for verdict in verdicts),
            "days": texts(claim.day for claim in claims),
            "epochs": numbers(claim.epoch for claim in claims),
            "channels": texts(claim.channel or "" for claim in claims),
            "values": numbers(None if verdict.redraw else verdict.claim.face_value for verdict in verdicts),
            "claimed": numbers(claim.claimed_at_ms for claim in claims),
            "devices": texts(claim.device_id for claim in claims),
            "ips": texts(claim.ip for claim in claims),
            "addresses": texts(claim.address_hash for claim in claims),
            "rules": texts(claim.review_rule or "" for claim in claims),
        },
    )
