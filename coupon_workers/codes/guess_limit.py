"""How many wrong codes may be tried: by user, by device and by network address (DESIGN 11).

A try is charged before the database is asked, and given back when its code was right: any number of tries at once are
no more than the limit. An allowance fills up again steadily, one try at a time, and a refused try does not make it wait
longer. It is kept in the Redis of the stock, with its append-only file; a flushed Redis gives everybody one new
allowance. Without Redis no code is tried.
"""

from __future__ import annotations

from dataclasses import dataclass

from coupon_workers.errors import StoreUnavailable, TooManyTries
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.network import network_of
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

WINDOW_MS = 600_000
"""Ten minutes, in which an allowance that is used up is whole again."""

OF_DEVICE, OF_ADDRESS = 2, 10
"""Times the allowance of a user. A family shares a device; an office, or the customers of a carrier, an address."""


@dataclass(frozen=True, slots=True)
class Guesser:
    """Whoever tries a code. ``ip`` is an address as text, checked."""

    user_id: str
    ip: str | None = None
    device_id: str | None = None


def charge_guess(services: Services, guesser: Guesser) -> None:
    """Charge one try. Raises ``TooManyTries`` with the time to wait: nothing is charged then; ``StoreUnavailable``."""
    limits = _limits(services, guesser)
    reply = lua_script("charge_guess")(
        services.redis, [key for key, _ in limits], [0, WINDOW_MS, *(most for _, most in limits)]
    )
    if reply[0] == b"LIMITED":
        raise TooManyTries(int(reply[1]))


def refund_guess(services: Services, guesser: Guesser) -> None:
    """Give a try back, whose code was right. Raises nothing: a try that cannot be given back fills up by itself."""
    limits = _limits(services, guesser)
    try:
        lua_script("refund_guess")(
            services.redis, [key for key, _ in limits], [0, WINDOW_MS, *(most for _, most in limits)]
        )
    except StoreUnavailable as error:
        log.warning("a right code stays counted as a try", error=str(error))


def _limits(services: Services, guesser: Guesser) -> list[tuple[str, int]]:
    """Keys with the tries allowed in the window. One hash tag: a script may touch them all on a cluster."""
    most = services.settings.guess_limit
    limits = [(f"cw:{{guess}}:user:{guesser.user_id}", most)]
    if guesser.device_id is not None:
        limits.append((f"cw:{{guess}}:device:{guesser.device_id}", most * OF_DEVICE))
    if guesser.ip is not None:
        limits.append((f"cw:{{guess}}:ip:{network_of(guesser.ip)}", most * OF_ADDRESS))
    return limits
