"""What a view may ask for: the connections of this process, and who is calling."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import BoundedSemaphore

from flask import Flask, current_app, request

from coupon_workers.access.key_name import KeyNames
from coupon_workers.access.key_ring import KeyRing
from coupon_workers.access.principal import Principal
from coupon_workers.claiming.claim_center import ClaimCenter
from coupon_workers.runtime.broker_queues import BrokerQueues
from coupon_workers.runtime.health import HealthCheck
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.vouched_page import VouchedPages

EXTENSION = "coupon_workers"

PRINCIPAL = "coupon_workers.principal"
"""Where the environment of a request holds its caller: cheaper than Flask's own ``g``, and paid at every claim."""

MOST_WAITS = 24
"""Requests of a process that may wait for a claim to be settled, each in a thread for up to ten seconds. With those
that may wait for PostgreSQL (``FRONT_WAITING``) they leave the working threads, and some for slow bodies, to claims."""


@dataclass(frozen=True, slots=True)
class Web:
    """What an application holds besides its routes; made by ``create_app``, one a process."""

    services: Services
    keys: KeyRing
    names: KeyNames
    queues: BrokerQueues
    health: HealthCheck
    wallets: VouchedPages
    center: ClaimCenter
    waits: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(MOST_WAITS))


def attach(app: Flask, web: Web) -> None:
    """Hand ``web`` to ``app``; its views find it by ``services()``."""
    app.extensions[EXTENSION] = web


def web_of(app: Flask) -> Web:
    """What ``attach`` gave to ``app``."""
    web: Web = app.extensions[EXTENSION]
    return web


def web_of_app() -> Web:
    """What the application that serves this request holds."""
    return web_of(current_app)


def services() -> Services:
    """The connections and clocks of this process."""
    return web_of_app().services


def principal() -> Principal:
    """Whoever calls: set before every view that ``require`` guards.

    Raises ``KeyError`` in a view that is open to all: it has no caller to speak of.
    """
    caller: Principal = request.environ[PRINCIPAL]
    return caller
