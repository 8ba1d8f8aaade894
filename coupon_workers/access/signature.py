"""Signed requests, for keys that demand them (API.md, Keys): an altered, a late or a repeated request is refused.

Whoever reads the key can sign with it: signing guards what is sent, not the key; that is for TLS to keep.

The caller adds three headers to ``Authorization: Bearer <key>``:

* ``X-Signature-Time``: the instant of signing, whole seconds since 1970 in decimal; within five minutes of ours;
* ``X-Signature-Nonce``: 16 to 64 letters, digits, ``-`` or ``_``, never used twice;
* ``X-Signature``: lower-case hex of HMAC-SHA256 over these five lines, joined by ``\\n`` and without one at the end::

      POST
      /v1/claims?x=1
      1793700000
      5c1f0d4a9be24f10
      <lower-case hex of the SHA-256 of the body, also of an empty one>

  the method in upper case; the path, percent-escapes decoded, in UTF-8, with ``?`` and the query as sent when there
  is one; the time; the nonce; the hash of the body.

The key of the HMAC is the text of the lower-case hex of the SHA-256 of the API key, so that the server needs only
the hash it has. A nonce is seen once: Redis keeps it for as long as its time could be accepted.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256

from redis.exceptions import RedisError

from coupon_workers.access.principal import Principal
from coupon_workers.errors import CouponWorkersError, StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.services import Services

WINDOW_S = 300
"""How far the time of signing may lie from ours, either way (API.md, Keys: five minutes)."""

NONCE_TTL_MS = 2 * WINDOW_S * 1000 + 60_000
"""A time at the far end of the window is accepted for twice the window; a minute more for clocks that differ."""

_TIME = re.compile(r"[0-9]{1,12}", re.ASCII)
_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)


class SignatureError(CouponWorkersError):
    """The request's signature is missing, wrong, too old, or was used before."""


def sign(key_hash: str, *, method: str, target: str, time: str, nonce: str, body: bytes) -> str:
    """The signature of a request, in lower-case hex; arguments as the module's docstring has them."""
    return sign_hash(key_hash, method=method, target=target, time=time, nonce=nonce, body_hash=sha256(body).hexdigest())


def sign_hash(key_hash: str, *, method: str, target: str, time: str, nonce: str, body_hash: str) -> str:
    """The same for a body of which only the SHA-256 is at hand, in lower-case hex: an upload lies in a file."""
    lines = (method.upper(), target, time, nonce, body_hash)
    return hmac.new(key_hash.encode(), "\n".join(lines).encode(), sha256).hexdigest()


def check_signature(
    services: Services,
    caller: Principal,
    *,
    method: str,
    target: str,
    time: str | None,
    nonce: str | None,
    signature: str | None,
    body_hash: str,
) -> None:
    """Accept a signed request, once. ``body_hash`` is the SHA-256 of its body, in lower-case hex.

    Raises ``SignatureError`` saying what is wrong, and ``StoreUnavailable`` when Redis cannot say whether the nonce is
    new: the caller signs anew, with another nonce.
    """
    if not time or not nonce or not signature:
        raise SignatureError("this key needs signed requests: X-Signature-Time, X-Signature-Nonce and X-Signature")
    if not _TIME.fullmatch(time) or not _NONCE.fullmatch(nonce):
        raise SignatureError("X-Signature-Time is seconds since 1970, X-Signature-Nonce 16 to 64 of A-Z a-z 0-9 - _")
    if abs(to_ms(services.clock()) - int(time) * 1000) > WINDOW_S * 1000:
        raise SignatureError(f"the request was signed more than {WINDOW_S} seconds from now")
    expected = sign_hash(caller.key_hash, method=method, target=target, time=time, nonce=nonce, body_hash=body_hash)
    # The nonce comes last: only the holder of the key can use one up.
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        raise SignatureError("the signature does not match the request")
    if not _is_new(services, caller, nonce):
        raise SignatureError("the nonce was used before")


def nonce_key(key_id: str, nonce: str) -> str:
    """String: the nonce was seen; it lives for as long as its time could be accepted."""
    return f"cw:nonce:{key_id}:{nonce}"


def _is_new(services: Services, caller: Principal, nonce: str) -> bool:
    try:
        return bool(services.redis.set(nonce_key(caller.key_id, nonce), 1, nx=True, px=NONCE_TTL_MS))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
