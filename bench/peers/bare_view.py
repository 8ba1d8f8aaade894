"""The bare view: what Flask costs before anybody does anything.

    python -m bench.peers.bare_view

It parses the JSON of a claim and answers 202 with the shape of our answer; and it answers a wallet of three coupons
and a claim centre of any size that it has at hand. It checks no key, validates nothing, asks
no Redis, logs nothing. It is served by the very function that serves our front, with the same settings: the same
Granian, processes, threads, backlog and time-outs.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from flask import Flask, request

import web.server
from coupon_workers.runtime.settings import settings

app = Flask("bare_view")
_claim_ids = count(653_247_040_368_672_768)
"""As many digits as our claim ids have: the answer has the same length."""


@app.post("/v1/claims")
def post_claim() -> tuple[dict[str, Any], int]:
    """As the tutorial has it: read the JSON, return a dict and a status."""
    claim = request.get_json()
    return {
        "claim_id": str(next(_claim_ids)),
        "status": "queued",
        "template_id": claim["template_id"],
        "user_id": claim["user_id"],
        "replayed": False,
    }, 202


_WALLET = {
    "items": [
        {
            "coupon_no": "653247040368672768",
            "template_id": "653247040368672767",
            "template_name": "Bench",
            "user_id": "u-0001-0000001",
            "status": "unused",
            "type": "amount_off",
            "amount": 2_000,
            "max_discount": None,
            "currency": "CNY",
            "threshold": 10_000,
            "valid_from": "2026-11-11T00:00:00.123456Z",
            "valid_to": "2026-11-18T00:00:00.123456Z",
            "source": "claim",
            "order_no": None,
            "issued_at": "2026-11-11T00:00:00.123456Z",
            "locked_until": None,
        }
    ]
    * 3,
    "next_cursor": None,
}


@app.get("/v1/users/<user_id>/coupons")
def get_wallet(user_id: str) -> dict[str, Any]:
    """Three coupons that it has at hand, as JSON."""
    return _WALLET


_OFFER = {
    "template_id": "653247040368672767",
    "name": "Bench",
    "type": "amount_off",
    "currency": "CNY",
    "amount": 2_000,
    "percent_off": None,
    "max_discount": None,
    "threshold": 10_000,
    "starts_at": "2026-11-11T00:00:00.123456Z",
    "ends_at": "2026-11-12T00:00:00.123456Z",
    "state": "claimable",
    "claimed": 0,
    "remaining": 50_000_000,
}


@app.get("/v1/claim-center")
def get_claim_center() -> dict[str, Any]:
    """So many offers as are asked for, as JSON."""
    items = [_OFFER] * int(request.args["limit"])
    return {"items": items, "next_cursor": None, "server_time": "2026-11-11T00:00:00.123456Z"}


def main() -> None:
    """Serve until told to stop."""
    web.server._load = lambda: app  # the one thing that differs: which application a server's process loads
    web.server.serve(settings())


if __name__ == "__main__":
    main()
