"""Writing a row of the audit log: in the transaction of the change, so that there is neither without the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.operator import acting_operator

Facts = Mapping[str, Any]

LONGEST_SUBJECT = 400
"""Characters: an address may name what does not exist at any length, and an index has its bounds."""

_RECORD = text("""
    INSERT INTO audit_log (operator, operator_name, request_id, action, subject, before, after)
    VALUES (:operator, :operator_name, :request_id, :action, :subject, CAST(:before AS jsonb), CAST(:after AS jsonb))
""")


def record(
    connection: Connection,
    action: AuditAction,
    subject: str,
    *,
    before: Facts | None = None,
    after: Facts | None = None,
) -> None:
    """Note that the acting operator has done ``action`` to ``subject`` (``template:7001``), in this transaction.

    ``before`` and ``after`` hold what has changed, and what was given with it (a comment, a reason); never a secret,
    nor the whole of what may be large. A row is a change: what is refused, or asked again in vain, leaves none.
    """
    operator = acting_operator()
    connection.execute(
        _RECORD,
        {
            "operator": operator.operator_id,
            "operator_name": operator.name,
            "request_id": operator.request_id,
            "action": action,
            "subject": subject[:LONGEST_SUBJECT],
            "before": _json(before),
            "after": _json(after),
        },
    )


def _json(facts: Facts | None) -> str | None:
    return None if facts is None else to_json(dict(facts), by_alias=True).decode()
