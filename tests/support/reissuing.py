"""An operator who gives coupons by hand: in this process, or in one of its own, which dies at a named point."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from typing import Any

from coupon_workers.coupons.reissue import Reissue, Reissued, reissue_coupon
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings, read_settings
from coupon_workers.runtime.worker_number import LeasedIds
from tests.support.code_crash import run_child
from tests.support.recon_reading import found
from tests.support.sale import Sale, assert_sound

OPERATOR = "key:k1"


def wish(template_id: int, user: str = "ann", request: str = "ticket-1", in_place_of: int | None = None) -> Reissue:
    """What the operator asks for."""
    return Reissue(user, template_id, request, "the parcel was lost", in_place_of)


def reissue(services: Services, *asked: Any, **more: Any) -> Reissued:
    """Give a coupon (see ``wish``)."""
    return reissue_coupon(services, wish(*asked, **more), OPERATOR)


def killed_at(settings: Settings, crash_at: str, asked: Reissue) -> int:
    """The return code of a process that asks."""
    return run_child("tests.support.reissuing", settings, crash_at, asdict(asked)).returncode


def assert_in_order(*sales: Sale) -> None:
    """The checker has no complaint and reconciliation finds nothing, as it stands and after each gate's rebuild."""
    services = sales[0].services
    for rebuilt in (False, True):
        if rebuilt:
            services.redis.flushdb()
            for sale in sales:
                sale.preheat()
        assert_sound(services)
        assert [] == found(services)


def _main() -> None:
    services = make_services(read_settings())
    ids = LeasedIds(services.redis)
    reissue_coupon(replace(services, next_id=ids.next_id), Reissue(**json.loads(sys.argv[1])), OPERATOR)


if __name__ == "__main__":
    _main()
