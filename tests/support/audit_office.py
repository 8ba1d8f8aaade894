"""Every write of an operator over HTTP, after what has to be there before, and the action that its row tells of."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import redis
from pydantic import SecretStr
from sqlalchemy import text

from coupon_workers.audit.action import AuditAction
from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.services import Services
from tests.support.batch_desk import BatchDesk
from tests.support.http_desk import template_body
from tests.support.http_shop import Shop
from tests.support.order_http import OrderCentre
from tests.support.reconciling import ReconDesk, difference

PEPPER = SecretStr("a pepper of the tests, long enough for anybody")

TEMPLATE = "/v1/templates/{template_id}"
BATCH = "/v1/batches/{batch_no}"
LOTTERY = "/v1/lotteries/{lottery_id}"
LETTER = "/v1/dead-letters/{message_id}"

AUDITED = {
    "POST /v1/templates": AuditAction.TEMPLATE_CREATE,
    f"PATCH {TEMPLATE}": AuditAction.TEMPLATE_CHANGE,
    f"DELETE {TEMPLATE}": AuditAction.TEMPLATE_ARCHIVE,
    f"POST {TEMPLATE}/publish": AuditAction.TEMPLATE_PUBLISH,
    f"POST {TEMPLATE}/approve": AuditAction.TEMPLATE_APPROVE,
    f"POST {TEMPLATE}/reject": AuditAction.TEMPLATE_REJECT,
    f"POST {TEMPLATE}/withdraw": AuditAction.TEMPLATE_WITHDRAW,
    f"POST {TEMPLATE}/pause": AuditAction.TEMPLATE_PAUSE,
    f"POST {TEMPLATE}/resume": AuditAction.TEMPLATE_RESUME,
    f"POST {TEMPLATE}/offline": AuditAction.TEMPLATE_OFFLINE,
    f"POST {TEMPLATE}/preheat": AuditAction.TEMPLATE_PREHEAT,
    f"POST {TEMPLATE}/clone": AuditAction.TEMPLATE_CREATE,
    f"POST {TEMPLATE}/revoke": AuditAction.TEMPLATE_REVOKE,
    "POST /v1/users/{user_id}/coupons/{coupon_no}/revoke": AuditAction.COUPON_REVOKE,
    "POST /v1/users/{user_id}/coupons/{coupon_no}/unlock": AuditAction.COUPON_UNLOCK,
    "POST /v1/users/{user_id}/coupons": AuditAction.COUPON_REISSUE,
    "POST /v1/batches": AuditAction.BATCH_CREATE,
    f"POST {BATCH}/approve": AuditAction.BATCH_APPROVE,
    f"POST {BATCH}/pause": AuditAction.BATCH_PAUSE,
    f"POST {BATCH}/resume": AuditAction.BATCH_RESUME,
    f"POST {BATCH}/cancel": AuditAction.BATCH_CANCEL,
    "POST /v1/code-batches": AuditAction.CODES_CREATE,
    "POST /v1/code-batches/{code_batch_id}/revoke": AuditAction.CODES_REVOKE,
    "POST /v1/lotteries": AuditAction.LOTTERY_CREATE,
    f"PATCH {LOTTERY}": AuditAction.LOTTERY_CHANGE,
    f"POST {LOTTERY}/approve": AuditAction.LOTTERY_APPROVE,
    f"POST {LOTTERY}/pause": AuditAction.LOTTERY_PAUSE,
    f"POST {LOTTERY}/resume": AuditAction.LOTTERY_RESUME,
    f"POST {LOTTERY}/end": AuditAction.LOTTERY_END,
    "PUT /v1/users/{user_id}/tags": AuditAction.TAGS_SET,
    "POST /v1/ledger/adjustments": AuditAction.LEDGER_ADJUST,
    "POST /v1/daily-closes/{date}": AuditAction.DAY_CLOSE,
    "POST /v1/daily-closes/{date}/reopen": AuditAction.DAY_REOPEN,
    "POST /v1/reconciliations": AuditAction.RECONCILIATION_ASK,
    "POST /v1/findings/{finding_id}/approve": AuditAction.FINDING_APPROVE,
    "POST /v1/findings/{finding_id}/ignore": AuditAction.FINDING_IGNORE,
    "POST /v1/webhooks": AuditAction.WEBHOOK_CREATE,
    "DELETE /v1/webhooks/{webhook_id}": AuditAction.WEBHOOK_END,
    "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay": AuditAction.DELIVERY_REPLAY,
    "POST /v1/api-keys": AuditAction.API_KEY_CREATE,
    "DELETE /v1/api-keys/{key_id}": AuditAction.API_KEY_REVOKE,
    f"POST {LETTER}/replay": AuditAction.DEAD_LETTER_REPLAY,
    f"POST {LETTER}/discard": AuditAction.DEAD_LETTER_DISCARD,
    "POST /v1/jobs/{name}/run": AuditAction.JOB_RUN,
    "PUT /v1/risk-policies/{name}": AuditAction.RISK_POLICY_PUT,
    "DELETE /v1/risk-policies/{name}": AuditAction.RISK_POLICY_DELETE,
    "PUT /v1/risk-lists/{name}": AuditAction.RISK_LIST_PUT,
    "DELETE /v1/risk-lists/{name}": AuditAction.RISK_LIST_DELETE,
    "PUT /v1/risk-scores/{user_id}": AuditAction.RISK_SCORE_PUT,
    "POST /v1/risk-reviews/{claim_id}/approve": AuditAction.RISK_REVIEW_APPROVE,
    "POST /v1/risk-reviews/{claim_id}/reject": AuditAction.RISK_REVIEW_REJECT,
}
"""Every write that a key of ``admin`` or ``ops`` opens, and the action by which the log tells of it."""

EXEMPT = {"POST /v1/codes/lookup": "a question, whose code is kept out of addresses; it writes nothing"}
"""Writes of operators that the log does not tell of, with the reason."""


Attempt = tuple[str, Any]
Attempts = dict[str, Callable[[], Attempt]]


class Office:
    """An operator who tries each write, after what has to be there before."""

    def __init__(self, services: Services, broker: redis.Redis) -> None:
        self.shop = Shop(services, claim_rate=0, batch_approval_above=0, webhook_private=True, code_pepper=PEPPER)
        self.boss = self.shop.caller("admin", "ops")
        self.other = self.shop.caller("admin")
        self.desk = self.shop.desk
        self.broker = broker

    def execute(self, statement: str, **named: Any) -> Any:
        """Something that is there before; the first value of what comes back."""
        with self.shop.services.engine.begin() as connection:
            return connection.execute(text(statement), named).scalar()

    def waiting(self) -> str:
        """A template that waits for approval."""
        return self.desk.open(approval_required=True)

    def coupon(self, template_id: str) -> str:
        """A coupon of ann's."""
        self.shop.front.claim(template_id, "ann").ok(202)
        self.shop.settle(template_id)
        return str(self.execute("SELECT coupon_id FROM coupon ORDER BY coupon_id DESC LIMIT 1"))

    def locked(self) -> str:
        """A coupon of ann's that an order has locked."""
        coupon_no = self.coupon(self.desk.open())
        OrderCentre(self.shop).lock("o1", [coupon_no]).ok()
        return coupon_no

    def batch(self, status: str = "ready") -> str:
        """A batch for ann that waits for approval."""
        batch_no = BatchDesk(self.other).made(self.desk.open(), "ann")
        stage_batch(self.shop.services, int(batch_no))
        if status == "paused":
            self.other.ask("POST", f"/v1/batches/{batch_no}/pause").ok()
        return batch_no

    def codes(self) -> dict[str, Any]:
        """A batch of codes, as it is asked for."""
        return {"template_id": self.desk.open(), "quantity": 2}

    def lottery(self, status: str = "open") -> str:
        """A lottery in this status."""
        made = self.other.ask("POST", "/v1/lotteries", THANKS).ok(201)["lottery_id"]
        self.execute("UPDATE lottery SET status = :status RETURNING status", status=status)
        return f"/v1/lotteries/{made}"

    def finding(self, repaired_by: str | None = None) -> str:
        """A finding that is open."""
        desk = ReconDesk(self.shop.services)
        desk.record([difference(repair=repaired_by)])
        return desk.findings()[0].finding_id

    def webhook(self) -> str:
        """A webhook with one delivery."""
        body = {"url": "http://127.0.0.1:9/hooks?token=hush"}
        return str(self.other.ask("POST", "/v1/webhooks", body).ok(201)["webhook_id"])

    def delivery(self, webhook_id: str) -> int:
        """A message on its way there."""
        made: int = self.execute(
            "INSERT INTO delivery (target, webhook_id, outbox_id, event, user_id, template_id, coupon_id, payload,"
            " next_attempt_at, occurred_at, created_at) VALUES ('webhook:' || :id, CAST(:id AS bigint), 1,"
            " 'coupon.issued', 'ann', 1, 1, '{}', now(), now(), now()) RETURNING delivery_id",
            id=webhook_id,
        )
        return made

    def letter(self) -> str:
        """A dead letter that can be read."""
        message = {"actor_name": "sweep_gates", "args": [], "options": {}, "queue_name": "care", "kwargs": {}}
        self.broker.zadd("dramatiq:care.XQ", {"message-1": 1_000})
        self.broker.hset("dramatiq:care.XQ.msgs", "message-1", json.dumps(message))
        return "message-1"


THANKS = {
    "name": "Wheel",
    "start": "2026-01-01T00:00:00Z",
    "end": "2035-01-01T00:00:00Z",
    "prizes": [{"name": "Thank you", "weight": 1_000_000, "stock": 5}],
}


def _adjustment(coupon_no: str) -> dict[str, Any]:
    return {"reference": "t-1", "user_id": "ann", "order_no": "o1", "coupon_no": coupon_no, "amount": 5, "reason": "x"}


def of_templates(office: Office) -> Attempts:
    """For each write: what has to be there, then its address and body."""
    desk = office.desk

    def paused() -> Attempt:
        template_id = desk.open()
        desk.act(template_id, "pause").ok()
        return f"/v1/templates/{template_id}/resume", None

    return {
        "POST /v1/templates": lambda: ("/v1/templates", template_body()),
        f"PATCH {TEMPLATE}": lambda: (f"/v1/templates/{desk.draft()}", {"name": "other"}),
        f"DELETE {TEMPLATE}": lambda: (f"/v1/templates/{desk.draft()}", None),
        f"POST {TEMPLATE}/publish": lambda: (f"/v1/templates/{desk.draft()}/publish", None),
        f"POST {TEMPLATE}/approve": lambda: (f"/v1/templates/{office.waiting()}/approve", {}),
        f"POST {TEMPLATE}/reject": lambda: (f"/v1/templates/{office.waiting()}/reject", {"comment": "no"}),
        f"POST {TEMPLATE}/withdraw": lambda: (f"/v1/templates/{office.waiting()}/withdraw", {}),
        f"POST {TEMPLATE}/pause": lambda: (f"/v1/templates/{desk.open()}/pause", None),
        f"POST {TEMPLATE}/resume": paused,
        f"POST {TEMPLATE}/offline": lambda: (f"/v1/templates/{desk.open()}/offline", None),
        f"POST {TEMPLATE}/preheat": lambda: (f"/v1/templates/{desk.open()}/preheat", None),
        f"POST {TEMPLATE}/clone": lambda: (f"/v1/templates/{desk.draft()}/clone", None),
        f"POST {TEMPLATE}/revoke": lambda: (f"/v1/templates/{desk.open()}/revoke", {"reason": "wrong"}),
        "POST /v1/users/{user_id}/coupons/{coupon_no}/revoke": lambda: (
            f"/v1/users/ann/coupons/{office.coupon(desk.open())}/revoke",
            {"reason": "wrong"},
        ),
        "POST /v1/users/{user_id}/coupons/{coupon_no}/unlock": lambda: (
            f"/v1/users/ann/coupons/{office.locked()}/unlock",
            {"reason": "given up", "force": True},
        ),
        "POST /v1/users/{user_id}/coupons": lambda: (
            "/v1/users/ann/coupons",
            {"template_id": desk.open(), "request_id": "t-1", "reason": "sorry"},
        ),
        "POST /v1/batches": lambda: ("/v1/batches", {"template_id": desk.open(), "name": "b", "tags": "vip"}),
        f"POST {BATCH}/approve": lambda: (f"/v1/batches/{office.batch()}/approve", None),
        f"POST {BATCH}/pause": lambda: (f"/v1/batches/{office.batch()}/pause", None),
        f"POST {BATCH}/resume": lambda: (f"/v1/batches/{office.batch('paused')}/resume", None),
        f"POST {BATCH}/cancel": lambda: (f"/v1/batches/{office.batch()}/cancel", None),
        "POST /v1/code-batches": lambda: ("/v1/code-batches", office.codes()),
        "POST /v1/code-batches/{code_batch_id}/revoke": lambda: (
            f"/v1/code-batches/{office.other.ask('POST', '/v1/code-batches', office.codes()).ok(202)['code_batch_id']}"
            "/revoke",
            None,
        ),
    }


def of_the_back_office(office: Office) -> Attempts:
    """The others."""

    def revoked_key() -> Attempt:
        body = {"name": "x", "scopes": ["storefront"]}
        return f"/v1/api-keys/{office.other.ask('POST', '/v1/api-keys', body).ok(201)['key_id']}", None

    def reopened() -> Attempt:
        office.other.ask("POST", "/v1/daily-closes/2026-01-02", {}).ok()
        return "/v1/daily-closes/2026-01-02/reopen", {"reason": "late"}

    def replayed() -> Attempt:
        webhook_id = office.webhook()
        return f"/v1/webhooks/{webhook_id}/deliveries/{office.delivery(webhook_id)}/replay", None

    return {
        "POST /v1/lotteries": lambda: ("/v1/lotteries", THANKS),
        f"PATCH {LOTTERY}": lambda: (office.lottery("paused"), {"version": 1, "name": "Another"}),
        f"POST {LOTTERY}/approve": lambda: (f"{office.lottery('pending_approval')}/approve", None),
        f"POST {LOTTERY}/pause": lambda: (f"{office.lottery()}/pause", None),
        f"POST {LOTTERY}/resume": lambda: (f"{office.lottery('paused')}/resume", None),
        f"POST {LOTTERY}/end": lambda: (f"{office.lottery()}/end", None),
        "PUT /v1/users/{user_id}/tags": lambda: ("/v1/users/ann/tags", {"tags": ["vip"]}),
        "POST /v1/ledger/adjustments": lambda: (
            "/v1/ledger/adjustments",
            _adjustment(office.coupon(office.desk.open())),
        ),
        "POST /v1/daily-closes/{date}": lambda: ("/v1/daily-closes/2026-01-02", {}),
        "POST /v1/daily-closes/{date}/reopen": reopened,
        "POST /v1/reconciliations": lambda: ("/v1/reconciliations", {"kind": "stock"}),
        "POST /v1/findings/{finding_id}/approve": lambda: (
            f"/v1/findings/{office.finding(next(iter(RepairName)).value)}/approve",
            {"comment": "yes"},
        ),
        "POST /v1/findings/{finding_id}/ignore": lambda: (f"/v1/findings/{office.finding()}/ignore", {"comment": "no"}),
        "POST /v1/webhooks": lambda: ("/v1/webhooks", {"url": "http://127.0.0.1:9/hooks?token=hush"}),
        "DELETE /v1/webhooks/{webhook_id}": lambda: (f"/v1/webhooks/{office.webhook()}", None),
        "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay": replayed,
        "POST /v1/api-keys": lambda: ("/v1/api-keys", {"name": "till", "scopes": ["storefront"]}),
        "DELETE /v1/api-keys/{key_id}": revoked_key,
        f"POST {LETTER}/replay": lambda: (f"/v1/dead-letters/{office.letter()}/replay", None),
        f"POST {LETTER}/discard": lambda: (f"/v1/dead-letters/{office.letter()}/discard", None),
        "POST /v1/jobs/{name}/run": lambda: ("/v1/jobs/sweep_gates/run", None),
    }


def of_risk(office: Office) -> Attempts:
    """Risk control."""

    def policy(*rules: dict[str, Any]) -> str:
        office.other.ask("PUT", "/v1/risk-policies/p", {"rules": rules}).ok()
        return "p"

    def held() -> str:
        rule = {"name": "look", "dimension": "user", "measure": "claims", "window_s": 9, "threshold": 0}
        name = policy(rule | {"verdict": "review"})
        template_id = office.desk.open(risk_policy=name)
        claim_id = str(office.shop.front.claim(template_id, "ann").ok(202)["claim_id"])
        office.shop.settle(template_id)
        return f"/v1/risk-reviews/{claim_id}"

    def listed() -> Attempt:
        office.other.ask("PUT", "/v1/risk-lists/block", {"dimension": "user", "value": "eve"}).ok()
        return "/v1/risk-lists/block?dimension=user&value=eve", None

    return {
        "PUT /v1/risk-policies/{name}": lambda: ("/v1/risk-policies/p", {"rules": []}),
        "DELETE /v1/risk-policies/{name}": lambda: (f"/v1/risk-policies/{policy()}", None),
        "PUT /v1/risk-lists/{name}": lambda: ("/v1/risk-lists/allow", {"dimension": "user", "value": "ann"}),
        "DELETE /v1/risk-lists/{name}": listed,
        "PUT /v1/risk-scores/{user_id}": lambda: ("/v1/risk-scores/ann", {"score": 7}),
        "POST /v1/risk-reviews/{claim_id}/approve": lambda: (f"{held()}/approve", {}),
        "POST /v1/risk-reviews/{claim_id}/reject": lambda: (f"{held()}/reject", {"comment": "no"}),
    }
