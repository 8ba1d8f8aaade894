"""What a worker process of the web server runs: its own connections, made after the fork, and the application on them.

A factory for WSGI servers: ``web.wsgi:application`` takes no argument and returns the application.
"""

from __future__ import annotations

from flask_openapi3 import OpenAPI

from coupon_workers.claiming.live_tally import tell_live_for_ever
from coupon_workers.runtime import metrics
from coupon_workers.runtime.orphan import end_with_parent
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.settings import settings
from coupon_workers.runtime.structured_log import configure_logs
from coupon_workers.wallet.wallet_watch import watch_wallets_for_ever
from web.app import create_app
from web.stalled_body import end_stalled_bodies


def application() -> OpenAPI:
    """The application of this process, which ends when the server's master does, even by ``kill -9``."""
    end_with_parent()
    configure_logs(settings())
    metrics.flush_for_ever()
    end_stalled_bodies(settings().http_port)
    services = make_services(settings())
    tell_live_for_ever(services)
    watch_wallets_for_ever(services)
    return create_app(services)
