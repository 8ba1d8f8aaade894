"""The bare pair: what lock and redeem cost when each is one guarded UPDATE and nothing else.

    python -m bench.peers.bare_orders

Two Flask views that parse the JSON of our calls, and in a transaction each move the coupon by one UPDATE that names
the status it leaves. No history, no ledger, no events, no discount, no validation, no key. Served by the very function
that serves our front, through the very pool, with the same settings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from flask import Flask, request
from sqlalchemy import Engine, text

import web.server
from coupon_workers.runtime.database import make_engine, transaction
from coupon_workers.runtime.settings import settings

app = Flask("bare_orders")

_LOCK = text(
    "UPDATE coupon SET status = 'locked', order_no = :order_no, version = version + 1, updated_at = now()"
    " WHERE user_id = :user_id AND coupon_id = :coupon_id AND status = 'unused'"
)
_REDEEM = text(
    "UPDATE coupon SET status = 'redeemed', version = version + 1, updated_at = now()"
    " WHERE user_id = :user_id AND order_no = :order_no AND status = 'locked'"
)


@lru_cache(maxsize=1)
def _engine() -> Engine:
    return make_engine(settings(), for_front=True)


@app.post("/v1/orders/<order_no>/lock")
def post_lock(order_no: str) -> tuple[dict[str, Any], int]:
    """Lock."""
    body = request.get_json()
    coupon_id = int(body["coupon_nos"][0])
    with transaction(_engine()) as connection:
        moved = connection.execute(
            _LOCK, {"user_id": body["user_id"], "coupon_id": coupon_id, "order_no": order_no}
        ).rowcount
    return {"order_no": order_no, "status": "locked"}, 200 if moved == 1 else 409


@app.post("/v1/orders/<order_no>/redeem")
def post_redeem(order_no: str) -> tuple[dict[str, Any], int]:
    """Redeem: the user has this one coupon, and the primary key leads to it."""
    body = request.get_json()
    with transaction(_engine()) as connection:
        moved = connection.execute(_REDEEM, {"user_id": body["user_id"], "order_no": order_no}).rowcount
    return {"order_no": order_no, "status": "redeemed"}, 200 if moved == 1 else 409


def main() -> None:
    """Serve until told to stop."""
    web.server._load = lambda: app  # the one thing that differs: which application a server's process loads
    web.server.serve(settings())


if __name__ == "__main__":
    main()
