"""Sessions of the console: a random token in a cookie, and in Redis what it stands for, under the token's SHA-256.

A session ends by itself when nobody has asked for ``IDLE_MS``, and in any case after ``LONGEST_MS``; whether its key is
still valid is asked of PostgreSQL at each request, so that it ends with its key at once. A flushed Redis logs everybody
out, and loses nothing else.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from hashlib import sha256

from redis.exceptions import RedisError

from coupon_workers.access.api_key import live_principals
from coupon_workers.access.principal import Principal
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.services import Services

IDLE_MS = 30 * 60_000
"""Half an hour: a lunch away from the desk ends it, a meeting on the phone does not."""

LONGEST_MS = 12 * 3_600_000
"""A working day."""

TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """``principal`` is the key's record as it is now; ``form_token`` goes with every form of the session."""

    principal: Principal
    form_token: str


def open_session(services: Services, key_id: str) -> str:
    """A new session of a key that has been verified; its token, told this once. Raises ``StoreUnavailable``."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    kept = {
        "key_id": key_id,
        "form_token": secrets.token_urlsafe(TOKEN_BYTES),
        "opened_ms": to_ms(services.clock()),
    }
    try:
        services.redis.set(_key(token), json.dumps(kept), px=IDLE_MS)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    return token


def find_session(services: Services, token: str, *, renew: bool = True) -> ConsoleSession | None:
    """The session of ``token``, if it goes on and its key is valid. Without ``renew`` the question is no activity: a
    page that asks by itself keeps nobody logged in. Raises ``StoreUnavailable``."""
    try:
        raw = services.redis.getex(_key(token), px=IDLE_MS) if renew else services.redis.get(_key(token))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    if raw is None:
        return None
    kept = json.loads(raw)
    if to_ms(services.clock()) - kept["opened_ms"] >= LONGEST_MS:
        end_session(services, token)
        return None
    principal = live_principals(services.engine, [kept["key_id"]]).get(kept["key_id"])
    if principal is None:
        end_session(services, token)
        return None
    return ConsoleSession(principal, kept["form_token"])


def end_session(services: Services, token: str) -> None:
    """Log out. Raises ``StoreUnavailable``."""
    try:
        services.redis.delete(_key(token))
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error


def _key(token: str) -> str:
    """A token can be of any form and length: whoever reads Redis learns none that could be sent."""
    return f"cw:console:{sha256(token.encode('utf-8', 'replace')).hexdigest()}"
