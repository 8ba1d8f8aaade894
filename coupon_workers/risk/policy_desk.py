"""What an operator does with policies: each change is a version, and the gates of its templates follow.

PostgreSQL leads: the change gives each template that names the policy a new version, in its own transaction, and so
the gates learn of it now, or by the sweep. Raises ``StoreUnavailable``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.errors import Conflict, NotFound, StoreUnavailable
from coupon_workers.risk.policy import RiskPolicyBody
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import preheat_template

log = get_logger(__name__)

Row = Mapping[Any, Any]

MOST_TOLD = 200
"""Gates that a change tells before it answers; the sweep tells the others within seconds."""

# Writers of one policy come one after the other, also where it is not there yet.
_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended('risk policy ' || :name, 0))")
_IN_FORCE = text("SELECT * FROM risk_policy WHERE name = :name FOR UPDATE")
_LATEST = text("SELECT coalesce(max(version), 0) FROM risk_policy_version WHERE name = :name")
_PUT = text("""
    INSERT INTO risk_policy (name, version, policy, changed_by, changed_at)
    VALUES (:name, :version, CAST(:policy AS jsonb), :operator, :now)
    ON CONFLICT (name) DO UPDATE SET version = excluded.version, policy = excluded.policy,
           changed_by = excluded.changed_by, changed_at = excluded.changed_at
    RETURNING *
""")
_KEEP = text("""
    INSERT INTO risk_policy_version (name, version, policy, changed_by, changed_at)
    VALUES (:name, :version, CAST(:policy AS jsonb), :operator, :now)
""")
_NEW_VERSION = text("""
    WITH held AS (
        SELECT template_id FROM coupon_template
         WHERE risk_policy = :name AND status IN ('scheduled', 'active', 'paused', 'ended', 'offline')
         ORDER BY template_id FOR UPDATE
    )
    UPDATE coupon_template t SET version = version + 1, updated_at = :now FROM held
     WHERE t.template_id = held.template_id RETURNING t.template_id
""")
_USERS = text(
    "SELECT template_id FROM coupon_template WHERE risk_policy = :name AND status <> 'archived'"
    " ORDER BY template_id LIMIT 20"
)
_DELETE = text("DELETE FROM risk_policy WHERE name = :name")


def put_policy(
    services: Services, name: str, body: RiskPolicyBody, operator: str | None, *, if_version: int | None = None
) -> Row:
    """Have ``body`` in force under ``name``; the same again changes nothing.

    Raises ``Conflict`` ``POLICY_CHANGED`` when another version than ``if_version`` (0: none) is in force.
    """
    with transaction(services.engine) as connection:
        before = _hold(connection, name, if_version)
        if before is not None and RiskPolicyBody.model_validate(before["policy"]) == body:
            return before
        after = _write(connection, name, body, operator, services.clock())
        told = {"policy": before["policy"], "version": before["version"]} if before else None
        record(
            connection,
            AuditAction.RISK_POLICY_PUT,
            f"risk_policy:{name}",
            before=told,
            after={"policy": after["policy"], "version": after["version"]},
        )
        templates = connection.scalars(_NEW_VERSION, {"name": name, "now": services.clock()}).all()
    _tell(services, templates, reload=body.asks_for_scores)
    return after


def delete_policy(services: Services, name: str, operator: str | None) -> Row:
    """Take a policy away, as the last of its versions, which stay readable.

    Raises ``NotFound`` ``POLICY_NOT_FOUND``; ``Conflict`` ``POLICY_IN_USE`` while a template names it.
    """
    with transaction(services.engine) as connection:
        before = _hold(connection, name, None)
        if before is None:
            raise NotFound("POLICY_NOT_FOUND", f"there is no risk policy {name}")
        users = [str(template_id) for template_id in connection.scalars(_USERS, {"name": name})]
        if users:
            raise Conflict("POLICY_IN_USE", "templates name this policy", template_ids=users)
        connection.execute(_DELETE, {"name": name})
        version = int(connection.scalar(_LATEST, {"name": name}) or 0) + 1
        after = _row(name, version, None, operator, services.clock())
        connection.execute(_KEEP, after)
        record(connection, AuditAction.RISK_POLICY_DELETE, f"risk_policy:{name}", before={"policy": before["policy"]})
    return {"name": name, "version": version, "policy": None, "changed_by": operator, "changed_at": after["now"]}


def _hold(connection: Connection, name: str, if_version: int | None) -> Row | None:
    connection.execute(_TURN, {"name": name})
    found = connection.execute(_IN_FORCE, {"name": name}).mappings().first()
    in_force = found["version"] if found else 0
    if if_version is not None and if_version != in_force:
        raise Conflict("POLICY_CHANGED", "another version is in force", version=in_force)
    return found


def _write(connection: Connection, name: str, body: RiskPolicyBody, operator: str | None, now: Any) -> Row:
    version = int(connection.scalar(_LATEST, {"name": name}) or 0) + 1
    row = _row(name, version, body.model_dump_json(), operator, now)
    connection.execute(_KEEP, row)
    return connection.execute(_PUT, row).mappings().one()


def _row(name: str, version: int, policy: str | None, operator: str | None, now: Any) -> dict[str, Any]:
    return {"name": name, "version": version, "policy": policy, "operator": operator, "now": now}


def _tell(services: Services, template_ids: Sequence[int], *, reload: bool) -> None:
    """``reload``: the policy asks for scores, which the gates may not hold yet."""
    try:
        for template_id in template_ids[:MOST_TOLD]:
            sync_template(services, template_id)
        for template_id in template_ids if reload else ():
            services.post.send(preheat_template(template_id))
    except StoreUnavailable as error:
        log.warning("gates learn of a risk policy later", count=len(template_ids), error=str(error))
