"""A new batch of codes: its units set aside and its row written in one transaction, its codes left to a worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.campaigns.batch_control import tell_gate
from coupon_workers.campaigns.reservation import free_units
from coupon_workers.codes.code_form import CodeForm
from coupon_workers.codes.pepper_ring import pepper_ring
from coupon_workers.errors import CapacityError, Conflict, InvalidInput, StoreUnavailable
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import generate_codes
from coupon_workers.schema import CodeBatch
from coupon_workers.templates.template_row import Row
from coupon_workers.templates.template_status import TemplateStatus, effective_status
from coupon_workers.templates.template_store import lock_template

log = get_logger(__name__)

_RESERVE = text(
    "UPDATE coupon_template SET reserved_quantity = reserved_quantity + :units, version = version + 1,"
    " updated_at = :now WHERE template_id = :template_id"
)
# Batches of a form are made one after the other: each counts those before it.
_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended('codes ' || :length || ' ' || :prefix, 0))")
_SIBLINGS = text(
    "SELECT coalesce(sum(quantity - used_count), 0) FROM code_batch"
    " WHERE canonical_prefix = :prefix AND length = :length AND status IN ('generating', 'done')"
)
_OPEN = frozenset({TemplateStatus.SCHEDULED, TemplateStatus.ACTIVE, TemplateStatus.PAUSED})


@dataclass(frozen=True, slots=True)
class NewCodeBatch:
    """What is asked for. ``channel``: the only one in which the codes hold; ``expires_at`` None: with the template."""

    code_batch_id: int
    template_id: int
    quantity: int
    form: CodeForm
    channel: str | None = None
    expires_at: datetime | None = None


def create_code_batch(services: Services, batch: NewCodeBatch, operator: str) -> None:
    """Set units aside for each code, store the batch, and have its codes generated.

    Safe to run again: a batch of this identity is left as it stands. Raises ``NotFound`` ``TEMPLATE_NOT_FOUND``;
    ``Conflict`` ``TEMPLATE_NOT_ACTIVE`` with ``current_status``, ``TYPE_NOT_OFFERED``, ``NOT_ENOUGH_STOCK`` with
    ``available``, ``CODES_NOT_SET_UP``; ``CapacityError``; ``InvalidInput`` for an end outside the template's time;
    ``StoreUnavailable``. Nothing is written then.
    """
    pepper_id = pepper_ring(services.settings).newest.pepper_id
    with transaction(services.engine) as connection:
        # Held first: two requests of one identity take turns, and the second finds what the first has stored.
        template = lock_template(connection, batch.template_id)
        if not _is_known(connection, batch):
            now = services.clock()
            _check(connection, template, batch, now)
            _reserve(services, connection, batch, now)
            connection.execute(insert(CodeBatch).values(_columns(batch, pepper_id, operator, now)))
            facts = {"template_id": str(batch.template_id), "quantity": batch.quantity, "channel": batch.channel}
            record(connection, AuditAction.CODES_CREATE, f"code_batch:{batch.code_batch_id}", after=facts)
    tell_gate(services, batch.template_id)
    _have_it_generated(services, batch.code_batch_id)


def _is_known(connection: Connection, batch: NewCodeBatch) -> bool:
    stored = select(CodeBatch.code_batch_id).where(CodeBatch.code_batch_id == batch.code_batch_id)
    return connection.scalar(stored) is not None


def _check(connection: Connection, template: Row, batch: NewCodeBatch, now: datetime) -> None:
    if template["type"] == "random_amount":
        raise Conflict("TYPE_NOT_OFFERED", "random amounts cannot be given for codes yet", type=template["type"])
    status = effective_status(template, now)
    if status not in _OPEN:
        detail = f"the template is {status}: codes are for one that is published and not over"
        raise Conflict("TEMPLATE_NOT_ACTIVE", detail, current_status=status.value)
    if batch.expires_at is not None and not max(now, template["claim_start"]) < batch.expires_at:
        raise InvalidInput([("expires_at", "must lie in the future, and after the template's beginning")])
    if batch.expires_at is not None and batch.expires_at > template["claim_end"]:
        message = f"must not lie after the template's end, {rfc3339(template['claim_end'])}"
        raise InvalidInput([("expires_at", message)])
    alike = {"prefix": batch.form.canonical_prefix, "length": batch.form.length}
    connection.execute(_TURN, alike)
    allowed = max(0, batch.form.allowed - connection.execute(_SIBLINGS, alike).scalar_one())
    if batch.quantity > allowed:
        raise CapacityError(batch.form.space, int(allowed))


def _reserve(services: Services, connection: Connection, batch: NewCodeBatch, now: datetime) -> None:
    available = free_units(services, connection, batch.template_id)
    if batch.quantity > available:
        detail = f"{batch.quantity} codes need as many units of stock, and {available} are left"
        raise Conflict("NOT_ENOUGH_STOCK", detail, available=available)
    connection.execute(_RESERVE, {"template_id": batch.template_id, "units": batch.quantity, "now": now})


def _columns(batch: NewCodeBatch, pepper_id: str, operator: str, now: datetime) -> dict[str, object]:
    return {
        "code_batch_id": batch.code_batch_id,
        "template_id": batch.template_id,
        "quantity": batch.quantity,
        "left_quantity": batch.quantity,
        "length": batch.form.length,
        "prefix": batch.form.prefix,
        "canonical_prefix": batch.form.canonical_prefix,
        "channel": batch.channel,
        "check_digit": batch.form.check_digit,
        "pepper_id": pepper_id,
        "expires_at": batch.expires_at,
        "created_by": operator,
        "created_at": now,
        "updated_at": now,
    }


def _have_it_generated(services: Services, code_batch_id: int) -> None:
    try:
        services.post.send(generate_codes(code_batch_id))
    except StoreUnavailable as error:
        # It is stored, and the sweep sends what nobody has begun.
        log.warning("code batch not announced", code_batch_id=code_batch_id, error=str(error))
