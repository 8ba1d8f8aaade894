"""What the two stores hold of one template, and what its model holds, in the same words, to be compared."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, text

from coupon_workers.coupons.reissue_sql import REQUEST_PREFIX
from tests.support.claiming_model import Books, Gate
from tests.support.pool import drawn, listed
from tests.support.sale import Sale

_TABLES = ("coupon_flow", "coupon", "pool_value", "outbox", "claim_rejection", "claim_set_aside", "coupon_template")
_ROWS = text("""
    SELECT jsonb_build_object(
        'coupons', (SELECT coalesce(jsonb_object_agg(coupon_id, jsonb_build_array(user_id, request_id, claim_seq,
                                                                                  face_value_minor)), '{}')
                      FROM coupon),
        'rejections', (SELECT coalesce(jsonb_object_agg(claim_id, jsonb_build_array(user_id, request_id, claim_seq,
                                                                                    reason)), '{}')
                         FROM claim_rejection),
        'books', (SELECT jsonb_build_array(version, total_quantity, status, pause_epoch, issued_quantity,
                                           rejected_quantity)
                    FROM coupon_template),
        'flow', (SELECT count(*) FROM coupon_flow),
        'outbox', (SELECT count(*) FROM outbox),
        'set_aside', (SELECT count(*) FROM claim_set_aside))
""")

View = dict[str, Any]


def empty_tables(engine: Engine) -> None:
    """Faster than TRUNCATE while there is little in them."""
    with engine.begin() as connection:
        for table in _TABLES:
            connection.execute(text(f"DELETE FROM {table}"))


def model_view(gate: Gate, books: Books) -> View:
    """What must be there."""
    rules, known, issued = books.rules, gate.rules, len(books.coupons) + len(books.given)
    return {
        "meta": [str(known.version), str(known.total), _word(known.paused), str(known.epoch)] if gate.warm else None,
        "stock": gate.stock,
        "takers": {user: f"{count} {seq}" for user, (count, seq) in gate.takers.items()},
        "requests": {f"{user} {request}": f"{told[0]} {told[1]}" for (user, request), told in gate.requests.items()},
        "claims": gate.claims,
        "pending": [
            ("{}-{}".format(*entry.entry_id), *map(str, (entry.claim_id, entry.user, entry.request, entry.seq)))
            for entry in gate.pending
        ],
        "drawn": [entry.value for entry in gate.pending],
        "listed": +gate.pool,
        "coupons": {str(claim_id): [*row, books.worth.get(claim_id)] for claim_id, row in books.coupons.items()}
        | {
            str(coupon_id): [user, f"{REQUEST_PREFIX}{request}", coupon_id, None]
            for (user, request), coupon_id in books.given.items()
        },
        "rejections": {str(claim_id): list(row) for claim_id, row in books.rejections.items()},
        "books": [
            rules.version,
            rules.total + len(books.given),
            "paused" if rules.paused else "active",
            rules.epoch,
            issued,
            len(books.rejections),
        ],
        "flow": issued,
        "outbox": issued + len(books.rejections),
        "set_aside": 0,
    }


def real_view(sale: Sale) -> View:
    """What is there."""
    keys = sale.keys
    pipeline = sale.services.redis.pipeline(transaction=False)
    pipeline.exists(keys.generation)
    pipeline.hmget(keys.meta, ["version", "total", "status", "epoch"])
    pipeline.get(keys.stock)
    for name in (keys.takers, keys.requests, keys.claims):
        pipeline.hgetall(name)
    pipeline.xrange(keys.pending)
    warm, meta, stock, takers, requests, claims, pending = pipeline.execute()
    with sale.services.engine.connect() as connection:
        rows: View = connection.scalar(_ROWS) or {}
    return {
        "meta": [value.decode() for value in meta] if warm else None,
        "stock": int(stock or 0),
        "takers": _texts(takers),
        "requests": _texts(requests),
        "claims": set(map(int, claims)),
        "pending": [
            (entry_id.decode(), *(fields[name].decode() for name in (b"c", b"u", b"r", b"s")))
            for entry_id, fields in pending
        ],
        "drawn": drawn(sale),
        "listed": listed(sale),
    } | rows


def _word(paused: bool) -> str:
    return "paused" if paused else "open"


def _texts(fields: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in fields.items()}
