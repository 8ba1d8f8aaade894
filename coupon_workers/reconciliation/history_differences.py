"""Coupons whose history is broken, or does not lead to where they stand (DESIGN 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby, takewhile
from typing import Any

from sqlalchemy import text

from coupon_workers.coupons.transition import TRANSITIONS
from coupon_workers.reconciliation.state_case import StateCase, coupon_subject
from coupon_workers.reconciliation.state_sums import END, ILLEGAL, LEFT, REACHED, is_partition_whole
from coupon_workers.schema.base import PARTITIONS

CHUNK = 1_000

# Of one partition, so that an eighth of all coupons is held at most; what does not fit ``work_mem`` goes to disk.
_SUSPECTS = f"""
    SELECT user_id, coupon_id
      FROM (SELECT user_id, coupon_id, sum({REACHED}) - sum({LEFT}) AS reached, bool_or({ILLEGAL}) AS illegal
              FROM coupon_flow_pN GROUP BY user_id, coupon_id) AS f
      FULL JOIN (SELECT user_id, coupon_id, {END} AS ends FROM coupon_pN) AS c USING (user_id, coupon_id)
     WHERE f.reached IS DISTINCT FROM c.ends OR f.illegal
     ORDER BY user_id, coupon_id LIMIT :most
"""

_KEYS = "unnest(CAST(:user_ids AS text[]), CAST(:coupon_ids AS bigint[])) AS key(user_id, coupon_id)"
_HISTORIES = text(f"""
    SELECT key.user_id, key.coupon_id, f.flow_no, f.action, f.from_status, f.to_status, f.at
      FROM {_KEYS}
     CROSS JOIN LATERAL (SELECT * FROM coupon_flow f WHERE f.user_id = key.user_id AND f.coupon_id = key.coupon_id
                         OFFSET 0) AS f
     ORDER BY key.user_id, key.coupon_id, f.flow_no
""")
_STANDINGS = text(f"""
    SELECT key.user_id, key.coupon_id, c.template_id, c.status, c.version, c.updated_at
      FROM {_KEYS}
      LEFT JOIN LATERAL (SELECT * FROM coupon c WHERE c.user_id = key.user_id AND c.coupon_id = key.coupon_id
                         OFFSET 0) AS c ON true
     ORDER BY key.user_id, key.coupon_id
""")


def find_history_differences(case: StateCase) -> None:
    """``history_broken``: an illegal step, a gap, or nothing at all; else ``status_differs``: it ends elsewhere."""
    for number in range(PARTITIONS):
        if not is_partition_whole(case.connection, number):
            statement = text(_SUSPECTS.replace("_pN", f"_p{number}"))
            _judge_all(case, case.connection.execute(statement, {"most": case.room}).all())


def _judge_all(case: StateCase, suspects: Sequence[Any]) -> None:
    for start in range(0, len(suspects), CHUNK):
        chunk = suspects[start : start + CHUNK]
        keys = {"user_ids": [row.user_id for row in chunk], "coupon_ids": [row.coupon_id for row in chunk]}
        steps = case.connection.execute(_HISTORIES, keys)
        histories = {key: list(rows) for key, rows in groupby(steps, lambda row: (row.user_id, row.coupon_id))}
        for coupon in case.connection.execute(_STANDINGS, keys):
            _judge(case, coupon, histories.get((coupon.user_id, coupon.coupon_id), []))


def _judge(case: StateCase, coupon: Any, history: Sequence[Any]) -> None:
    """What has happened by the moment is judged; where the coupon stands only if it has not moved since."""
    before = list(takewhile(lambda step: step.at <= case.as_of, history))
    broken = _first_broken(before)
    moved = len(before) < len(history) or (coupon.updated_at is not None and coupon.updated_at > case.as_of)
    if broken is not None:
        case.add_coupon("history_broken", coupon, **_evidence(broken, before, coupon, case.as_of))
    elif moved:
        case.unjudged.add(coupon_subject(coupon.user_id, coupon.coupon_id))
    elif not before:
        case.add_coupon("history_broken", coupon, steps=0, status=coupon.status, version=coupon.version)
    elif (coupon.status, coupon.version) != (before[-1].to_status, before[-1].flow_no):
        ends = {"history": before[-1].to_status, "steps": before[-1].flow_no}
        case.add_coupon("status_differs", coupon, status=coupon.status, version=coupon.version, **ends)


def _first_broken(history: Sequence[Any]) -> int | None:
    """Where the first step stands that is no move of the table, or does not follow on the one before it."""
    reached = None
    for place, step in enumerate(history):
        legal = (step.action, step.from_status, step.to_status) in TRANSITIONS
        if not legal or step.flow_no != place + 1 or step.from_status != reached:
            return place
        reached = step.to_status
    return None


def _evidence(place: int, history: Sequence[Any], coupon: Any, as_of: datetime) -> dict[str, Any]:
    step = history[place]
    stands = {} if coupon.updated_at is None or coupon.updated_at > as_of else {"status": coupon.status}
    return stands | {
        "after": history[place - 1].to_status if place else None,
        "expected_step": place + 1,
        "step": step.flow_no,
        "action": step.action,
        "from": step.from_status,
        "to": step.to_status,
    }
