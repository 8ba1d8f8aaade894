"""Pages of risk control with something to see on them."""

from __future__ import annotations

from typing import Any

from coupon_workers.risk.sweep import sweep_risk
from tests.support.http_shop import Shop

POLICY = "doorkeeper"

RULES: list[dict[str, Any]] = [
    {"name": "device_burst", "dimension": "device", "measure": "claims", "window_s": 3600, "threshold": 2},
    {
        "name": "shared_ip",
        "dimension": "ip",
        "measure": "distinct_users",
        "window_s": 86400,
        "threshold": 1,
        "verdict": "review",
    },
    {
        "name": "much_money",
        "dimension": "user",
        "measure": "face_value_minor",
        "window_s": 86400,
        "threshold": 0,
        "shadow": True,
    },
]


def put_policy(shop: Shop, *rules: dict[str, Any], name: str = POLICY, **fields: Any) -> None:
    """Have a policy in force."""
    body = {"rules": list(rules), **fields}
    shop.desk.admin.ask("PUT", f"/v1/risk-policies/{name}", body).ok()


def claim(shop: Shop, template_id: str, user: str, **source: str) -> Any:
    """One claim from somewhere."""
    body = {"template_id": template_id, "user_id": user, "request_id": "r1", **source}
    return shop.front.ask("POST", "/v1/claims", body)


def held(shop: Shop, *users: str, **fields: Any) -> dict[str, str]:
    """A claim of each user from one address that a rule wants looked at; claim ids by user."""
    put_policy(shop, RULES[1] | {"threshold": 0}, RULES[2], **fields)
    template_id = shop.desk.open(name="满100减20 双十一", risk_policy=POLICY)
    claims = {
        user: claim(shop, template_id, user, device_id=f"phone-{user}", ip="203.0.113.7").ok(202)["claim_id"]
        for user in users
    }
    shop.settle(template_id)
    return claims


def at_work(shop: Shop) -> str:
    """A policy that has refused, held and only noted; the template."""
    put_policy(shop, *RULES, description="双十一的门卫")
    template_id = shop.desk.open(name="满100减20 双十一", risk_policy=POLICY)
    for number in range(5):
        claim(shop, template_id, f"u-{number}", device_id="phone-1", ip="203.0.113.7")
    shop.settle(template_id)
    sweep_risk(shop.services)
    return template_id


def policies_page(shop: Shop) -> str:
    """Two."""
    put_policy(shop, *RULES, description="双十一的门卫")
    put_policy(shop, name="idle")
    return "/risk-policies"


def policy_page(shop: Shop) -> str:
    """One at work."""
    at_work(shop)
    return f"/risk-policies/{POLICY}"


def edit_policy_page(shop: Shop) -> str:
    """Of one with three rules."""
    put_policy(shop, *RULES)
    return f"/risk-policies/{POLICY}/edit"


def lists_page(shop: Shop) -> str:
    """A device for good, a user until a day."""
    for value in ({"value": "phone-1", "comment": "养号设备"}, {"value": "u-7", "dimension": "user"}):
        body = {"dimension": "device", "expires_at": "2035-01-01T00:00:00Z" if "dimension" in value else None} | value
        shop.desk.admin.ask("PUT", "/v1/risk-lists/block", body).ok()
    return "/risk-lists"


def reviews_page(shop: Shop) -> str:
    """Three that wait."""
    held(shop, "ann", "ben", "cleo")
    return "/risk-reviews"


def verdicts_page(shop: Shop) -> str:
    """Of a policy at work."""
    at_work(shop)
    return "/risk-verdicts"
