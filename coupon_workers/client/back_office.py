"""The back office: books, reconciliation, keys, webhooks, and what operators have done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from coupon_workers.client.book_answer import AuditEntry, ClosedDay, DayClose, LedgerAnswer
from coupon_workers.client.caller import Caller, given, segment
from coupon_workers.client.finding_answer import FindingAnswer, RunAnswer, RunSummary
from coupon_workers.client.wallet_answer import CouponAnswer, CouponHistoryAnswer
from coupon_workers.client.webhook_answer import (
    DeliveryAnswer,
    KeyAnswer,
    NewKeyAnswer,
    NewWebhookAnswer,
    WebhookAnswer,
)

Kind = Literal["stock", "state", "orders", "batches", "codes"]
Scope = Literal["storefront", "orders", "admin", "ops"]


class BackOffice:
    """Scope ``admin``. Each write takes an ``idempotency_key``, or makes one."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def ledger(
        self,
        *,
        date: str | None = None,
        template_id: str | None = None,
        user_id: str | None = None,
        order_no: str | None = None,
    ) -> Iterator[LedgerAnswer]:
        """Bookings: the latest day first, in it by template, the newest first; or a user's, those of one of the user's
        orders, over all days and templates, the newest first."""
        named = {"date": date, "template_id": template_id, "user_id": user_id, "order_no": order_no}
        return self._caller.every("/v1/ledger", named)

    def adjust(
        self,
        reference: str,
        *,
        user_id: str,
        order_no: str,
        coupon_no: str,
        amount: int,
        reason: str,
    ) -> LedgerAnswer:
        """Correct what a coupon cost on an order, in minor units; once by its ``reference``, for good."""
        body = given(reference=reference, user_id=user_id, order_no=order_no, coupon_no=coupon_no)
        body |= {"amount": amount, "reason": reason}
        return cast("LedgerAnswer", self._caller.write_numbered("/v1/ledger/adjustments", body, reference))

    def close_day(self, date: str, *, idempotency_key: str | None = None) -> DayClose:
        """Freeze what each template's coupons did and cost on a day."""
        return cast("DayClose", self._caller.write("POST", _day(date), idempotency_key=idempotency_key))

    def reopen_day(self, date: str, reason: str, *, idempotency_key: str | None = None) -> DayClose:
        """Open a closed day again; the closing is kept."""
        path, body = f"{_day(date)}/reopen", {"reason": reason}
        return cast("DayClose", self._caller.write("POST", path, body, idempotency_key=idempotency_key))

    def days(self) -> Iterator[ClosedDay]:
        """All days that were ever closed, the latest first, each as it was last closed."""
        return self._caller.every("/v1/daily-closes")

    def day(self, date: str) -> DayClose:
        """A day as it was last closed."""
        return cast("DayClose", self._caller.read(_day(date)))

    def day_csv(self, date: str) -> str:
        """The same as CSV."""
        return self._caller.read_text(f"{_day(date)}.csv")

    def reconcile(
        self, kind: Kind, *, as_of: str | None = None, date: str | None = None, idempotency_key: str | None = None
    ) -> RunAnswer:
        """Compare, by a worker. Orders take a ``date``, the other kinds may take a moment."""
        body = given(kind=kind, as_of=as_of, date=date)
        answer = self._caller.write("POST", "/v1/reconciliations", body, idempotency_key=idempotency_key)
        return cast("RunAnswer", answer)

    def reconciliations(self, *, kind: Kind | None = None) -> Iterator[RunSummary]:
        """All reconciliations, newest first."""
        return self._caller.every("/v1/reconciliations", {"kind": kind})

    def reconciliation(self, run_id: str) -> RunAnswer:
        """How a reconciliation stands."""
        return cast("RunAnswer", self._caller.read(f"/v1/reconciliations/{segment(run_id)}"))

    def findings(
        self,
        *,
        state: str | None = None,
        kind: Kind | None = None,
        finding_class: str | None = None,
        date: str | None = None,
        run_id: str | None = None,
    ) -> Iterator[FindingAnswer]:
        """What differed, newest first."""
        query = {"state": state, "kind": kind, "class": finding_class, "date": date, "run_id": run_id}
        return self._caller.every("/v1/findings", query)

    def findings_csv(self, *, state: str | None = None, kind: Kind | None = None, run_id: str | None = None) -> str:
        """The newest 10,000 as CSV."""
        return self._caller.read_text("/v1/findings.csv", {"state": state, "kind": kind, "run_id": run_id})

    def finding(self, finding_id: str) -> FindingAnswer:
        """One, with both sides of what was compared."""
        return cast("FindingAnswer", self._caller.read(f"/v1/findings/{segment(finding_id)}"))

    def approve_finding(
        self,
        finding_id: str,
        *,
        amount: int | None = None,
        comment: str | None = None,
        idempotency_key: str | None = None,
    ) -> FindingAnswer:
        """Do what it proposes. ``amount``: what was at stake as it was read."""
        path, body = f"/v1/findings/{segment(finding_id)}/approve", given(amount=amount, comment=comment)
        return cast("FindingAnswer", self._caller.write("POST", path, body, idempotency_key=idempotency_key))

    def ignore_finding(self, finding_id: str, comment: str, *, idempotency_key: str | None = None) -> FindingAnswer:
        """Leave it as it is."""
        path, body = f"/v1/findings/{segment(finding_id)}/ignore", {"comment": comment}
        return cast("FindingAnswer", self._caller.write("POST", path, body, idempotency_key=idempotency_key))

    def reissue_coupon(
        self, user_id: str, template_id: str, request_id: str, reason: str, *, in_place_of: str | None = None
    ) -> CouponAnswer:
        """Give a coupon by hand, or one in place of another; once by the user's ``request_id``, for good."""
        path = f"/v1/users/{segment(user_id)}/coupons"
        body = given(template_id=template_id, request_id=request_id, reason=reason, in_place_of=in_place_of)
        return cast("CouponAnswer", self._caller.write_numbered(path, body, request_id))

    def revoke_coupon(
        self, user_id: str, coupon_no: str, reason: str, *, idempotency_key: str | None = None
    ) -> CouponHistoryAnswer:
        """Take an unused coupon back."""
        return self._act(user_id, coupon_no, "revoke", {"reason": reason}, idempotency_key)

    def unlock_coupon(
        self, user_id: str, coupon_no: str, reason: str, *, force: bool = False, idempotency_key: str | None = None
    ) -> CouponHistoryAnswer:
        """Have the order that has locked a coupon let go; while it may still be paid only with ``force``."""
        return self._act(user_id, coupon_no, "unlock", {"reason": reason, "force": force}, idempotency_key)

    def _act(
        self, user_id: str, coupon_no: str, action: str, body: Mapping[str, Any], idempotency_key: str | None
    ) -> CouponHistoryAnswer:
        path = f"/v1/users/{segment(user_id)}/coupons/{segment(coupon_no)}/{action}"
        answer = self._caller.write("POST", path, body, idempotency_key=idempotency_key)
        return cast("CouponHistoryAnswer", answer)

    def make_key(
        self, name: str, scopes: Sequence[Scope], *, signed: bool = False, idempotency_key: str | None = None
    ) -> NewKeyAnswer:
        """A key, shown once. ``key`` is null when the first answer was lost: revoke it, and make another."""
        body = {"name": name, "scopes": list(scopes), "signed": signed}
        answer = self._caller.write("POST", "/v1/api-keys", body, idempotency_key=idempotency_key)
        return cast("NewKeyAnswer", answer)

    def keys(self) -> Iterator[KeyAnswer]:
        """All keys, newest first."""
        return self._caller.every("/v1/api-keys")

    def revoke_key(self, key_id: str, *, idempotency_key: str | None = None) -> KeyAnswer:
        """It opens nothing any more."""
        path = f"/v1/api-keys/{segment(key_id)}"
        return cast("KeyAnswer", self._caller.write("DELETE", path, idempotency_key=idempotency_key))

    def make_webhook(
        self,
        url: str,
        events: Sequence[str] = (),
        *,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> NewWebhookAnswer:
        """Have events sent to ``url``; none named: all. ``secret`` is shown once, as a key is."""
        body = given(url=url, events=list(events), description=description)
        answer = self._caller.write("POST", "/v1/webhooks", body, idempotency_key=idempotency_key)
        return cast("NewWebhookAnswer", answer)

    def webhooks(self) -> Iterator[WebhookAnswer]:
        """All webhooks, newest first."""
        return self._caller.every("/v1/webhooks")

    def end_webhook(self, webhook_id: str, *, idempotency_key: str | None = None) -> WebhookAnswer:
        """It is told of nothing any more."""
        return cast(
            "WebhookAnswer", self._caller.write("DELETE", _webhook(webhook_id), idempotency_key=idempotency_key)
        )

    def deliveries(self, webhook_id: str, *, state: str | None = None) -> Iterator[DeliveryAnswer]:
        """What was sent to a webhook, newest first."""
        return self._caller.every(f"{_webhook(webhook_id)}/deliveries", {"state": state})

    def replay_delivery(
        self, webhook_id: str, delivery_id: str, *, idempotency_key: str | None = None
    ) -> DeliveryAnswer:
        """Send a message again, at once."""
        path = f"{_webhook(webhook_id)}/deliveries/{segment(delivery_id)}/replay"
        return cast("DeliveryAnswer", self._caller.write("POST", path, idempotency_key=idempotency_key))

    def audit_log(
        self,
        *,
        subject: str | None = None,
        action: str | None = None,
        key_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Iterator[AuditEntry]:
        """Who did what to what, newest first."""
        query = {"subject": subject, "action": action, "key_id": key_id, "since": since, "until": until}
        return self._caller.every("/v1/audit-log", query)


def _day(date: str) -> str:
    return f"/v1/daily-closes/{segment(date)}"


def _webhook(webhook_id: str) -> str:
    return f"/v1/webhooks/{segment(webhook_id)}"
