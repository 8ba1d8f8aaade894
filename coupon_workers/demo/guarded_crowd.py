"""Who comes to the guarded sale: shoppers, an office behind one address, and two farms of accounts."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from coupon_workers.load.claim_call import ClaimCall, ClaimKind

DEVICE_LIMIT = 2
ADDRESS_LIMIT = 6
FLOOD_LIMIT = 20
POLICY: dict[str, Any] = {
    "description": "a demo: few accounts on a device, more behind an address, and no flood from one",
    "rules": [
        {
            "name": "accounts_of_device",
            "dimension": "device",
            "measure": "distinct_users",
            "window_s": 3600,
            "threshold": DEVICE_LIMIT,
        },
        {
            "name": "flood_of_address",
            "dimension": "ip",
            "measure": "claims",
            "window_s": 3600,
            "threshold": FLOOD_LIMIT,
        },
        {
            "name": "accounts_of_address",
            "dimension": "ip",
            "measure": "distinct_users",
            "window_s": 3600,
            "threshold": ADDRESS_LIMIT,
            "verdict": "review",
        },
    ],
}
"""An hour: no window slides on while a demo lasts."""

FARM_DEVICE, FARM_IP, OFFICE_IP = "farm-phone", "203.0.113.66", "192.0.2.10"
RETRY_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Crowd:
    """``users`` accounts, called ``<name>-<number>``. ``device`` or ``ip``: all have the same; None: each its own.

    ``most``: the coupons that the policy lets it have, before an operator decides about what is held.
    """

    name: str
    says: str
    users: int
    most: int
    device: str | None = None
    ip: str | None = None
    hostile: bool = False


def crowds(scale: int) -> tuple[Crowd, ...]:
    """The honest first."""
    return (
        Crowd("shopper", "shoppers, each with a phone and an address", 40 * scale, 40 * scale),
        Crowd("office", "an office, all behind one address", 10, ADDRESS_LIMIT, ip=OFFICE_IP),
        Crowd("device-farm", "accounts on one device", 50 * scale, DEVICE_LIMIT, device=FARM_DEVICE, hostile=True),
        Crowd("address-farm", "accounts behind one address", 25 * scale, ADDRESS_LIMIT, ip=FARM_IP, hostile=True),
    )


def crowd_of(user_id: str) -> str:
    """The crowd's name of one of its users."""
    return user_id.rpartition("-")[0]


def first_wave(crowd: tuple[Crowd, ...], template_id: str, *, run: str, seed: int) -> list[ClaimCall]:
    """A claim of each account in one crush, and some of them again, as clients do that heard nothing."""
    draw = random.Random(seed)
    claims = [call for each in crowd for call in _claims(each, template_id, f"{run}-1")]
    claims += [call._replace(kind=ClaimKind.RETRY) for call in claims if draw.random() < RETRY_SHARE]
    draw.shuffle(claims)
    return claims


def second_wave(crowd: tuple[Crowd, ...], template_id: str, *, run: str) -> list[ClaimCall]:
    """The farms once more, by new requests."""
    return [call for each in crowd if each.hostile for call in _claims(each, template_id, f"{run}-2")]


def _claims(crowd: Crowd, template_id: str, run: str) -> list[ClaimCall]:
    return [
        ClaimCall(
            template_id,
            f"{crowd.name}-{number}",
            f"{run}-{crowd.name}-{number}",
            device_id=crowd.device or f"phone-{crowd.name}-{number}",
            ip=crowd.ip or _own_address(crowd, number),
        )
        for number in range(crowd.users)
    ]


def _own_address(crowd: Crowd, number: int) -> str:
    """One of the network that is kept for trials of load (RFC 2544); those of the farm are proxies."""
    return f"198.{19 if crowd.hostile else 18}.{number // 250}.{number % 250 + 1}"
