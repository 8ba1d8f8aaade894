"""How many wrong keys a network address may try at the console. A right one is given back.

A key cannot be guessed; what is limited is the load, and the noise in which a stolen key would be tried unseen.
"""

from __future__ import annotations

from coupon_workers.codes.guess_limit import WINDOW_MS
from coupon_workers.errors import TooManyTries
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.network import network_of
from coupon_workers.runtime.services import Services

MOST_TRIES = 20
"""In ten minutes. Behind a proxy all operators share an address."""


def charge_login(services: Services, address: str) -> None:
    """Charge one try. Raises ``TooManyTries`` with the time to wait, ``StoreUnavailable``."""
    reply = lua_script("charge_guess")(services.redis, [_key(address)], [0, WINDOW_MS, MOST_TRIES])
    if reply[0] == b"LIMITED":
        raise TooManyTries(int(reply[1]))


def refund_login(services: Services, address: str) -> None:
    """Give a try back, whose key was right. Raises ``StoreUnavailable``."""
    lua_script("refund_guess")(services.redis, [_key(address)], [0, WINDOW_MS, MOST_TRIES])


def _key(address: str) -> str:
    try:
        return f"cw:{{login}}:{network_of(address)}"
    except ValueError:
        return "cw:{login}:unknown"  # a Unix socket has no address: all who come by it share one allowance
