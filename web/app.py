"""The application: routes, errors, keys and the frame around them. One a process, made after the fork."""

from __future__ import annotations

from flask_openapi3 import OpenAPI

from coupon_workers.access.key_name import KeyNames
from coupon_workers.access.key_ring import KeyRing
from coupon_workers.claiming.claim_center import ClaimCenter
from coupon_workers.runtime.broker_queues import BrokerQueues
from coupon_workers.runtime.health import HealthCheck
from coupon_workers.runtime.kept_page import KeptPages
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.vouched_page import VouchedPages
from web import (
    approvals_api,
    audit_api,
    batches_api,
    books_api,
    claim_center_api,
    claims_api,
    codes_api,
    contacts_api,
    health_api,
    jobs_api,
    keys_api,
    lotteries_api,
    metrics_api,
    order_statements_api,
    orders_api,
    queues_api,
    reader,
    reconciliations_api,
    reissue_api,
    revocations_api,
    risk_api,
    risk_policies_api,
    tags_api,
    templates_api,
    wallet_api,
    webhooks_api,
)
from web.auth import guard_views
from web.console.pages import console
from web.context import Web, attach
from web.error_answer import answer_errors, validation_problem
from web.json_answer import JsonAnswers
from web.json_body import MOST_BODY, StrictRequest
from web.openapi_document import DescribedApplication
from web.path_id import UserIdConverter
from web.request_frame import RequestFrame
from web.shop.pages import shop

BLUEPRINTS = (
    templates_api.api,
    approvals_api.api,
    claims_api.api,
    claim_center_api.api,
    wallet_api.api,
    orders_api.api,
    order_statements_api.api,
    keys_api.api,
    queues_api.api,
    jobs_api.api,
    health_api.api,
    metrics_api.api,
    webhooks_api.api,
    contacts_api.api,
    batches_api.api,
    codes_api.api,
    lotteries_api.api,
    books_api.api,
    reconciliations_api.api,
    revocations_api.api,
    reissue_api.api,
    risk_policies_api.api,
    risk_api.api,
    tags_api.api,
    audit_api.api,
)


def create_app(services: Services) -> OpenAPI:
    """The WSGI application on ``services``.

    Raises ``RuntimeError`` for a view that does not say who may call it, ``StoreUnavailable`` for a missing address.
    """
    app = described_application()
    app.request_class = StrictRequest
    app.json = JsonAnswers(app)
    app.config["MAX_CONTENT_LENGTH"] = MOST_BODY
    # An address is right or wrong: a redirect to another spelling would lose the body and the key of a careless client.
    app.url_map.merge_slashes = False
    queues = BrokerQueues(services.settings)
    wallets = VouchedPages(services.lean, services.redis)
    center = ClaimCenter(services, KeptPages(services.lean, services.redis))
    keys, names = KeyRing(services.engine), KeyNames(services.engine)
    attach(app, Web(services, keys, names, queues, HealthCheck(services, queues), wallets, center))
    app.register_blueprint(reader.pages)
    app.register_blueprint(console)
    if services.settings.shop:
        app.register_blueprint(shop)
    answer_errors(app)
    guard_views(app)
    app.wsgi_app = RequestFrame(app.wsgi_app)  # type: ignore[method-assign]
    return app


def described_application() -> DescribedApplication:
    """The views and their description alone: they answer nothing before ``create_app`` has given them services."""
    app = DescribedApplication("web", validation_error_callback=validation_problem)
    app.url_map.converters["user"] = UserIdConverter
    for blueprint in BLUEPRINTS:
        app.register_api(blueprint)
    return app
