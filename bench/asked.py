"""What a load asks, as bytes over the wire: made before the clock starts, the same for us and for the peer.

Each is a chain: requests that one connection asks one after the other, as a client does that needs the answer to the
first before it can ask the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

HOST = "127.0.0.1"

Kind = Literal["claim", "claim from", "claim batch", "order pair", "wallet", "claim center"]
Chain = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """``kind`` says what is asked; ``claims_each`` claims a request of a batch. ``mark`` keeps the users and requests
    of loads apart; coupons of an order pair are numbered from ``first_coupon``; wallets are those of ``users``,
    one after the other and again (0: of another one each time); a claim centre is asked for ``offers``. Asking ends
    after ``seconds``, or ``most`` chains.
    """

    kind: Kind
    port: int
    key: str
    template_id: int
    mark: str
    connections: int
    seconds: float
    most: int
    claims_each: int = 1
    first_coupon: int = 0
    users: int = 0
    offers: int = 0


def chains(spec: LoadSpec) -> Iterator[Chain]:
    """Every chain of the load."""
    make = _MAKERS[spec.kind]
    for number in range(spec.most):
        yield make(spec, number)


def user_of(mark: str, number: int) -> str:
    """The user of a load's chain."""
    return f"u-{mark}-{number:07}"


def _claim(spec: LoadSpec, number: int) -> Chain:
    return (_post(spec, "/v1/claims", _claim_body(spec, number)),)


def _claim_from(spec: LoadSpec, number: int) -> Chain:
    """A claim that says where it comes from: three users share each device, address and network, here and there."""
    source = number % 50_021
    body = (
        f'{_claim_body(spec, number)[:-1]},"device_id":"device-{source:07}",'
        f'"ip":"10.{source % 251}.{source % 241}.7","address_hash":"a{source:015x}"}}'
    )
    return (_post(spec, "/v1/claims", body),)


def _claim_batch(spec: LoadSpec, number: int) -> Chain:
    first = number * spec.claims_each
    claims = ",".join(_claim_body(spec, first + offset) for offset in range(spec.claims_each))
    return (_post(spec, "/v1/claims/batch", f'{{"claims":[{claims}]}}'),)


def _claim_body(spec: LoadSpec, number: int) -> str:
    return (
        f'{{"template_id":"{spec.template_id}","user_id":"{user_of(spec.mark, number)}",'
        f'"request_id":"order-form-{spec.mark}-{number:07}","channel":"app"}}'
    )


def _order_pair(spec: LoadSpec, number: int) -> Chain:
    """Lock, then redeem: an order of two lines with one coupon."""
    user, order = user_of(spec.mark, number), f"o-{spec.mark}-{number:07}"
    lock = (
        f'{{"user_id":"{user}","currency":"CNY","channel":"app","lines":['
        '{"line_id":"1","product_id":"p9","category_id":"c1","unit_price":10000,"quantity":1},'
        '{"line_id":"2","product_id":"p4","category_id":"c2","unit_price":2500,"quantity":2}],'
        f'"coupon_nos":["{spec.first_coupon + number}"]}}'
    )
    redeem = f'{{"user_id":"{user}","payment_no":"pay-{order}"}}'
    return (
        _post(spec, f"/v1/orders/{order}/lock", lock),
        _post(spec, f"/v1/orders/{order}/redeem", redeem),
    )


def _wallet(spec: LoadSpec, number: int) -> Chain:
    user = number % spec.users if spec.users else number
    return (_get(spec, f"/v1/users/{user_of(spec.mark, user)}/coupons"),)


def _claim_center(spec: LoadSpec, number: int) -> Chain:
    user = user_of(spec.mark, number)
    return (_get(spec, f"/v1/claim-center?user_id={user}&channel=app&limit={spec.offers}"),)


_MAKERS: dict[Kind, Callable[[LoadSpec, int], Chain]] = {
    "claim": _claim,
    "claim from": _claim_from,
    "claim batch": _claim_batch,
    "order pair": _order_pair,
    "wallet": _wallet,
    "claim center": _claim_center,
}


def _post(spec: LoadSpec, path: str, body: str) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}:{spec.port}\r\nAuthorization: Bearer {spec.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def _get(spec: LoadSpec, path: str) -> bytes:
    return (f"GET {path} HTTP/1.1\r\nHost: {HOST}:{spec.port}\r\nAuthorization: Bearer {spec.key}\r\n\r\n").encode()
