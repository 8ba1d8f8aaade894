"""Generating the codes of a batch, chunk by chunk (DESIGN 11, CASES 27 and 28).

The hashes of a chunk, its sealed plain texts and the batch's count are one transaction: a worker that dies leaves
neither a code whose text is lost nor a text whose code is not stored, and the next one goes on at the count. One chunk
is in memory at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, text

from coupon_workers.codes.code_batch import CodeBatchStatus, Row, form_of, take_code_batch
from coupon_workers.codes.code_drawing import draw_codes
from coupon_workers.codes.code_form import CodeForm
from coupon_workers.codes.export_seal import ExportSeal
from coupon_workers.codes.pepper_ring import HASH_BYTES, pepper_ring
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import generate_codes

log = get_logger(__name__)

CHUNK = 10_000
"""Codes in a transaction: some 300 KB in memory and a fifth of a second, after which a revocation is heard."""

TURN_S = 5.0
"""A worker hands over to a new message after this, so that shut-downs are short and batches take turns."""

Draw = Callable[[CodeForm, int], list[str]]

# One text of all hashes, cut by the server: ten thousand values would have to be parsed one by one. Codes of the batch
# that meet one another meet in the key.
_STORE = text(f"""
    INSERT INTO code (code_batch_id, code_hash)
    SELECT :code_batch_id, substring(CAST(:hashes AS bytea) FROM {HASH_BYTES} * nth + 1 FOR {HASH_BYTES})
      FROM generate_series(0, :count - 1) AS nth
    ON CONFLICT DO NOTHING
""")
_SEAL = text(
    "INSERT INTO code_export_part (code_batch_id, part_no, content) VALUES (:code_batch_id, :part_no, :sealed)"
)
_UNDER_OTHER_PEPPERS = text("SELECT count(*) FROM code WHERE code_hash = ANY (:hashes)")
_COUNT = text(
    "UPDATE code_batch SET generated_count = generated_count + :count, updated_at = :now,"
    "       status = CASE WHEN generated_count + :count = quantity THEN 'done' ELSE status END,"
    "       finished_at = CASE WHEN generated_count + :count = quantity THEN CAST(:now AS timestamptz) END"
    " WHERE code_batch_id = :code_batch_id"
)
_PARTS = text("SELECT coalesce(max(part_no), 0) FROM code_export_part WHERE code_batch_id = :code_batch_id")


def run_generation(services: Services, code_batch_id: int, *, chunk: int = CHUNK, turn_s: float = TURN_S) -> None:
    """Generate until the batch is done or the turn is over; then the next message goes out.

    Safe at any time, by any number of workers: one has the batch, the others find nothing to do. Raises
    ``StoreUnavailable``, and ``Conflict`` ``PEPPER_MISSING``: the chunks before then are done, and the sweep sends it
    again.
    """
    turn_ends = time.monotonic() + turn_s
    while generate_chunk(services, code_batch_id, chunk=chunk):
        if time.monotonic() > turn_ends:
            services.post.send(generate_codes(code_batch_id))
            return


def generate_chunk(services: Services, code_batch_id: int, *, chunk: int = CHUNK, draw: Draw = draw_codes) -> bool:
    """Generate the next codes of a batch; whether there are more to come that are this worker's to make."""
    with transaction(services.engine) as connection:
        batch = take_code_batch(connection, code_batch_id)
        if batch is None or batch["status"] != CodeBatchStatus.GENERATING:
            return False
        count = min(chunk, batch["quantity"] - batch["generated_count"])
        codes = _store_hashes(services, connection, batch, count, draw)
        _store_texts(services, connection, batch, codes)
        named = {"code_batch_id": code_batch_id, "count": count, "now": services.clock()}
        connection.execute(_COUNT, named)
        crash_point("codes.before_commit")
    crash_point("codes.after_commit")
    return bool(batch["generated_count"] + count < batch["quantity"])


def _store_hashes(services: Services, connection: Connection, batch: Row, count: int, draw: Draw) -> list[str]:
    """As many new codes as were asked for. Where one is there already, all of them are drawn again: that is once in a
    hundred chunks where codes lie as close as they may."""
    ring, prefix, form = pepper_ring(services.settings), batch["canonical_prefix"], form_of(batch)
    pepper = ring.find(batch["pepper_id"])
    others = [other for other in ring.peppers if other is not pepper]
    while True:
        codes = draw(form, count)
        with connection.begin_nested() as attempt:
            hashes = b"".join(sorted(pepper.hash_of(prefix + code) for code in codes))
            named = {"code_batch_id": batch["code_batch_id"], "hashes": hashes, "count": count}
            stored = connection.execute(_STORE, named).rowcount
            known = sum(_known(connection, [other.hash_of(prefix + code) for code in codes]) for other in others)
            if stored == count and not known:
                return codes
            attempt.rollback()
        log.info("codes drawn again", code_batch_id=batch["code_batch_id"], met=count - stored + known)


def _known(connection: Connection, hashes: Sequence[bytes]) -> int:
    return int(connection.execute(_UNDER_OTHER_PEPPERS, {"hashes": list(hashes)}).scalar_one())


def _store_texts(services: Services, connection: Connection, batch: Row, codes: Sequence[str]) -> None:
    code_batch_id, prefix = batch["code_batch_id"], batch["prefix"]
    seal = ExportSeal(pepper_ring(services.settings).find(batch["pepper_id"]), code_batch_id)
    part_no = connection.execute(_PARTS, {"code_batch_id": code_batch_id}).scalar_one() + 1
    plain = "".join(f"{prefix}{code}\r\n" for code in codes).encode("ascii")
    named = {"code_batch_id": code_batch_id, "part_no": part_no, "sealed": seal.close(part_no, plain)}
    connection.execute(_SEAL, named)
