"""A template with a risk policy on sale, and claims of it from somewhere."""

from __future__ import annotations

from typing import Any

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate import Decision
from coupon_workers.risk.policy import RiskPolicyBody
from coupon_workers.risk.policy_desk import put_policy
from coupon_workers.runtime.services import Services
from tests.support.sale import Sale, open_sale

POLICY = "doorkeeper"


def rule(name: str = "burst", **changed: Any) -> dict[str, Any]:
    """No more than two claims of a device in a minute."""
    fields: dict[str, Any] = {"dimension": "device", "measure": "claims", "window_s": 60, "threshold": 2}
    fields |= changed
    if fields["measure"] == "score":
        fields |= {"dimension": "user", "window_s": None}
    return {"name": name} | fields


def policy(*rules: dict[str, Any], **changed: Any) -> RiskPolicyBody:
    """A policy of ``rules``."""
    return RiskPolicyBody.model_validate({"rules": list(rules)} | changed)


def risky_sale(services: Services, *rules: dict[str, Any], **columns: Any) -> Sale:
    """A template whose policy has ``rules``; ``columns`` are its own."""
    body = policy(*rules, **columns.pop("policy", {}))
    put_policy(services, POLICY, body, "key-1")
    return open_sale(services, risk_policy=POLICY, **columns)


def claim_from(
    sale: Sale, user: str, *, request: str = "r1", device: str = "", ip: str = "", address: str = "", now_ms: int = 0
) -> Decision:
    """Claim from a device, an address of the network, one of the post."""
    return sale.gate.claim(ClaimRequest(sale.template_id, user, request, "", device, ip, address), now_ms)
