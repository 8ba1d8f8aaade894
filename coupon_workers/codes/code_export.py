"""The plain texts of a batch, handed out once as a file, and deleted then (API.md, codes; DESIGN 11).

Once means once to the end: a download that breaks off may be begun anew, by one caller at a time. Whoever has it holds
a lease that each part renews; a front that dies in its midst leaves it to run out.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.codes.code_batch import CodeBatchStatus, ExportState, Row, hold_code_batch
from coupon_workers.codes.export_seal import ExportSeal
from coupon_workers.codes.pepper_ring import pepper_ring
from coupon_workers.errors import Conflict, Gone, Overtaken, StoreUnavailable
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

HEADER = b"code\r\n"

LEASE = timedelta(seconds=60)
"""Longer than a slow client takes for a part of some 130 KB."""

_LEASE = text(
    "UPDATE code_batch SET fetch_token = :token, fetch_until = :until WHERE code_batch_id = :code_batch_id"
    " RETURNING (SELECT count(*) FROM code_export_part p WHERE p.code_batch_id = code_batch.code_batch_id)"
)
_PART = text("SELECT content FROM code_export_part WHERE code_batch_id = :code_batch_id AND part_no = :part_no")
_RENEW = text(
    "UPDATE code_batch SET fetch_until = :until"
    " WHERE code_batch_id = :code_batch_id AND fetch_token = :token AND export = 'kept'"
)
_LET_GO = text(
    "UPDATE code_batch SET fetch_token = NULL, fetch_until = NULL"
    " WHERE code_batch_id = :code_batch_id AND fetch_token = :token AND export = 'kept'"
)
_FETCHED = text(
    """
    WITH fetched AS (
        UPDATE code_batch SET export = 'fetched', fetched_by = :operator, fetched_at = :now, fetch_until = NULL,
               updated_at = :now
         WHERE code_batch_id = :code_batch_id AND fetch_token = :token AND export = 'kept'
        RETURNING code_batch_id
    )
    DELETE FROM code_export_part WHERE code_batch_id IN (SELECT code_batch_id FROM fetched)
    """
)


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is being handed out: its length in bytes, and its pieces, to be taken once."""

    length: int
    pieces: Iterator[bytes]


def fetch_codes(services: Services, code_batch_id: int, operator: str) -> Download:
    """Hand out the plain texts: a line each behind the header ``code``. No transaction is open between two pieces.

    When the last piece has been taken the texts are deleted. Raises ``NotFound`` ``CODE_BATCH_NOT_FOUND``; ``Conflict``
    ``NOT_READY`` while it generates, ``FETCH_IN_PROGRESS``, ``PEPPER_MISSING``; ``Gone`` ``CODES_FETCHED`` with when
    and by whom, ``CODES_DROPPED`` for a batch that has ended; ``StoreUnavailable``, also from the pieces.
    """
    token, now = secrets.token_hex(8), services.clock()
    with transaction(services.engine) as connection:
        batch = hold_code_batch(connection, code_batch_id)
        _check(batch)
        if batch["fetch_until"] is not None and batch["fetch_until"] > now:
            until = rfc3339(batch["fetch_until"])
            raise Conflict("FETCH_IN_PROGRESS", "the codes are being fetched by somebody else", until=until)
        record(connection, AuditAction.CODES_FETCH, f"code_batch:{code_batch_id}")
        seal = ExportSeal(pepper_ring(services.settings).find(batch["pepper_id"]), code_batch_id)
        named = {"code_batch_id": code_batch_id, "token": token, "until": now + LEASE}
        parts = connection.execute(_LEASE, named).scalar_one()
    line = len(batch["prefix"]) + batch["length"] + len(b"\r\n")
    length = len(HEADER) + line * batch["quantity"]
    pieces = _Fetch(services, code_batch_id, token, seal, operator).pieces(parts)
    next(pieces)  # one that was never begun would not hear that it is closed, and keep its lease
    return Download(length, pieces)


def _check(batch: Row) -> None:
    if batch["export"] == ExportState.FETCHED:
        detail = f"the codes were fetched at {rfc3339(batch['fetched_at'])}; they can be fetched once"
        raise Gone("CODES_FETCHED", detail, fetched_at=batch["fetched_at"], fetched_by=batch["fetched_by"])
    if batch["export"] == ExportState.DROPPED:
        raise Gone("CODES_DROPPED", f"the batch is {batch['status']}: its codes are worth nothing, and were deleted")
    if batch["status"] == CodeBatchStatus.GENERATING:
        detail = f"{batch['generated_count']} of {batch['quantity']} codes are generated"
        raise Conflict("NOT_READY", detail, generated=batch["generated_count"], quantity=batch["quantity"])


class _Fetch:
    """One download, under its token."""

    def __init__(self, services: Services, code_batch_id: int, token: str, seal: ExportSeal, operator: str) -> None:
        self._services = services
        self._seal = seal
        self._named = {"code_batch_id": code_batch_id, "token": token}
        self._operator = operator

    def pieces(self, parts: int) -> Iterator[bytes]:
        whole = False
        try:
            yield b""
            yield HEADER
            for part_no in range(1, parts + 1):
                yield self._part(part_no)
            # The server has taken the last piece.
            whole = True
            self._finish()
        finally:
            if not whole:
                self._let_go()

    def _part(self, part_no: int) -> bytes:
        with transaction(self._services.engine) as connection:
            self._renew(connection)
            sealed = connection.execute(_PART, self._named | {"part_no": part_no}).scalar_one()
        return self._seal.open(part_no, bytes(sealed))

    def _renew(self, connection: Connection) -> None:
        until = {"until": self._services.clock() + LEASE}
        if connection.execute(_RENEW, self._named | until).rowcount != 1:
            raise Overtaken("the codes were fetched by somebody else, or their batch has ended")

    def _finish(self) -> None:
        with transaction(self._services.engine) as connection:
            connection.execute(_FETCHED, self._named | {"operator": self._operator, "now": self._services.clock()})
        log.info("codes fetched", code_batch_id=self._named["code_batch_id"], by=self._operator)

    def _let_go(self) -> None:
        try:
            with transaction(self._services.engine) as connection:
                connection.execute(_LET_GO, self._named)
        except StoreUnavailable as error:
            log.warning("a broken download is held until its lease ends", error=str(error))
