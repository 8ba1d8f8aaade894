"""The log of verdicts: what fired of claims that were let through is written as they are settled; of refused ones the
gate keeps a log of bounded length, which the sweep empties into the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from redis.exceptions import RedisError
from sqlalchemy import Connection, text

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.pending import PendingClaim
from coupon_workers.errors import StoreUnavailable
from coupon_workers.risk.subject import gates_with_log
from coupon_workers.runtime.array_literal import numbers, texts
from coupon_workers.runtime.chunked_deletion import CHUNK, delete_in_chunks
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

KEPT = timedelta(days=90)
AT_A_TIME = 1_000

_INSERT = text("""
    INSERT INTO risk_verdict (template_id, source_id, rule, verdict, shadow, at, claim_id, user_id, device_id, ip,
                              address_hash)
    SELECT :template_id, source_id, rule, verdict, shadow, timestamptz 'epoch' + at_ms * interval '1 ms', claim_id,
           user_id, NULLIF(device_id, ''), NULLIF(ip, ''), NULLIF(address_hash, '')
      FROM unnest(CAST(:sources AS text[]), CAST(:rules AS text[]), CAST(:verdicts AS text[]),
                  CAST(:shadows AS boolean[]), CAST(:ats AS bigint[]), CAST(:claims AS bigint[]),
                  CAST(:users AS text[]), CAST(:devices AS text[]), CAST(:ips AS text[]), CAST(:addresses AS text[]))
        AS v(source_id, rule, verdict, shadow, at_ms, claim_id, user_id, device_id, ip, address_hash)
    ON CONFLICT ON CONSTRAINT uq_risk_verdict_source DO NOTHING
""")
_DROPPED = text("""
    INSERT INTO risk_log_loss AS l (template_id, dropped) VALUES (:template_id, :dropped)
    ON CONFLICT (template_id) DO UPDATE SET dropped = l.dropped + excluded.dropped
""")
_FORGET = text("""
    DELETE FROM risk_verdict WHERE verdict_id = ANY (ARRAY (
        SELECT verdict_id FROM risk_verdict WHERE at < :before ORDER BY at LIMIT :chunk
    ))
""")


class Fired(NamedTuple):
    """What fired of one claim. ``source_id`` tells it from all others of its template; ``claim_id`` None: refused."""

    source_id: str
    claim_id: int | None
    user_id: str
    at_ms: int
    fired: str
    device_id: str
    ip: str
    address_hash: str


def write_fired(connection: Connection, template_id: int, claims: Sequence[PendingClaim]) -> None:
    """Write down what fired of claims that are settled; a second time changes nothing."""
    found = [
        Fired(
            str(claim.claim_id),
            claim.claim_id,
            claim.user_id,
            claim.claimed_at_ms,
            claim.fired,
            claim.device_id,
            claim.ip,
            claim.address_hash,
        )
        for claim in claims
        if claim.fired
    ]
    _insert(connection, template_id, found)


def drain_logs(services: Services) -> int:
    """Empty the gates' logs of refusals into the table; how many entries. Safe at any time, by any number.

    Raises ``StoreUnavailable``; what was not taken off comes again.
    """
    return sum(_drain(services, keys) for keys in gates_with_log(services))


def forget_verdicts(services: Services, now: datetime) -> int:
    """Delete verdicts past their keeping time at ``now``, in chunks. Raises ``StoreUnavailable``."""
    return delete_in_chunks(services.engine, _FORGET, {"before": now - KEPT}, CHUNK)


def _drain(services: Services, keys: BucketKeys) -> int:
    drained = 0
    try:
        while entries := _oldest(services, keys):
            with transaction(services.engine) as connection:
                _insert(connection, keys.template_id, [_fired(*entry) for entry in entries])
            crash_point("verdicts.after_commit")
            # By the entries' own ids: of two that drain at once, neither takes off what the other has not written.
            services.redis.xdel(keys.risk_log, *(entry_id for entry_id, _ in entries))
            drained += len(entries)
        dropped: Any = services.redis.getdel(keys.risk_dropped)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    if dropped:
        log.warning("refusals were not noted", template_id=keys.template_id, count=int(dropped))
        with transaction(services.engine) as connection:
            connection.execute(_DROPPED, {"template_id": keys.template_id, "dropped": int(dropped)})
    return drained


def _oldest(services: Services, keys: BucketKeys) -> list[tuple[bytes, dict[bytes, bytes]]]:
    entries: Any = services.redis.xrange(keys.risk_log, count=AT_A_TIME)
    return list(entries)


def _fired(entry_id: bytes, fields: Mapping[bytes, bytes]) -> Fired:
    part = {name.decode(): value.decode() for name, value in fields.items()}
    return Fired(entry_id.decode(), None, part["u"], int(part["t"]), part["k"], part["i"], part["p"], part["a"])


def _insert(connection: Connection, template_id: int, found: Iterable[Fired]) -> None:
    rows = [(each, *_verdict_of(word)) for each in found for word in each.fired.split(",")]
    if not rows:
        return
    columns = {
        "sources": texts(each.source_id for each, *_ in rows),
        "rules": texts(rule for _, _, rule, _ in rows),
        "verdicts": texts(verdict for _, verdict, _, _ in rows),
        "shadows": texts(str(shadow).lower() for *_, shadow in rows),
        "ats": numbers(each.at_ms for each, *_ in rows),
        "claims": numbers(each.claim_id for each, *_ in rows),
        "users": texts(each.user_id for each, *_ in rows),
        "devices": texts(each.device_id for each, *_ in rows),
        "ips": texts(each.ip for each, *_ in rows),
        "addresses": texts(each.address_hash for each, *_ in rows),
    }
    connection.execute(_INSERT, columns | {"template_id": template_id})


def _verdict_of(word: str) -> tuple[str, str, bool]:
    verdict, _, rule = word.removeprefix("~").partition(" ")
    return verdict, rule, word.startswith("~")
