"""A tour of the whole API by its client, in an order that makes sense; the test plays the workers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dramatiq
import httpx
from dramatiq.message import Message

from coupon_workers.client import CouponClient
from coupon_workers.client.order_answer import OrderBody
from coupon_workers.codes.code_generation import run_generation
from coupon_workers.coupons.revocation import perform_revocation
from coupon_workers.lottery.draw_settlement import drain_draws
from coupon_workers.notify.delivery import deliver
from coupon_workers.notify.relay import relay_outbox
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.broker import make_broker
from coupon_workers.runtime.task import Queue
from tests.support.api_recorder import Recorder
from tests.support.batch_desk import users_csv
from tests.support.batch_worker import work
from tests.support.http_desk import from_now, template_body
from tests.support.http_shop import Shop
from tests.support.notify_receiver import Receiver
from tests.support.reconciling import ReconDesk, difference

ORDER: OrderBody = {
    "user_id": "u-1001",
    "currency": "CNY",
    "channel": "app",
    "lines": [{"line_id": "1", "product_id": "p9", "category_id": "c1", "unit_price": 10_000, "quantity": 3}],
}


@dataclass
class Tour:
    """Through ``shop``; every exchange is in ``recorder``."""

    shop: Shop
    recorder: Recorder = field(default_factory=Recorder)

    def client(self, *scopes: str) -> CouponClient:
        """The holder of a new key of these scopes."""
        caller = self.shop.caller(*scopes)
        key = caller._headers["Authorization"].removeprefix("Bearer ")
        http = httpx.Client(base_url="http://shop", transport=self.recorder.over(self.shop.app))
        return CouponClient("http://shop", key, http=http)

    def walk(self, receiver: Receiver, broker: dramatiq.Broker) -> None:
        """All of it."""
        self.front, self.admin = self.client("storefront"), self.client("admin", "ops")
        self.centre, self.boss = self.client("orders"), self.client("admin")
        self.webhook = self.admin.back_office.make_webhook(receiver.url, ["coupon.issued"])
        self.templates()
        self.claims()
        self.approvals()
        self.orders()
        self.statements()
        self.batches()
        self.codes()
        self.lotteries()
        self.risk()
        self.books()
        self.findings()
        self.recalls()
        self.keys_and_webhooks()
        self.operations(broker)

    def template(self, **fields: Any) -> str:
        """A new template, published; its id."""
        made = self.admin.templates.create(template_body(**fields))
        return self.admin.templates.publish(made["template_id"])["template_id"]

    def coupon(self, template_id: str, user: str = "u-1001", request: str = "order-form-8f1c") -> str:
        """A coupon claimed and settled."""
        claimed = self.front.claims.claim(template_id, user, request, channel="app")
        self.shop.settle(template_id)
        return claimed["claim_id"]

    def templates(self) -> None:
        """From a draft to the archive."""
        desk = self.admin.templates
        template_id = self.template(transferable=True)
        assert 20 == desk.change(template_id, {"total_quantity": 20})["total_quantity"]  # type: ignore[typeddict-item]
        assert "paused" == desk.pause(template_id)["status"]
        assert "active" == desk.resume(template_id)["status"]
        assert 0 == desk.preheat(template_id)["coupons_loaded"]
        assert template_id in [each["template_id"] for each in desk.every(status="active")]
        clone = desk.clone(template_id)["template_id"]
        desk.publish(clone)
        assert "offline" == desk.take_offline(clone)["status"]
        assert "archived" == desk.archive(clone)["status"]
        assert 20 == desk.read(template_id)["stock"]["remaining"]

    def claims(self) -> None:
        """Claimed alone and together, looked at, given away."""
        template_id = self.template(transferable=True)
        assert template_id in [offer["template_id"] for offer in self.front.claims.offers("u-1001")]
        coupon_no = self.coupon(template_id)
        assert self.front.claims.claim(template_id, "u-1001", "order-form-8f1c", channel="app")["replayed"]
        assert "issued" == self.front.claims.read(coupon_no)["status"]
        more = self.front.claims.claim_many(
            [{"template_id": template_id, "user_id": f"u-{n}", "request_id": "r1"} for n in (1, 2)]
        )
        assert [202, 202] == [item["status"] for item in more]
        self.shop.settle(template_id)
        wallet = self.front.wallet
        assert [coupon_no] == [coupon["coupon_no"] for coupon in wallet.coupons("u-1001", status="unused")]
        given = wallet.transfer("u-1001", coupon_no, "u-1002")
        assert "unused" == wallet.coupon("u-1002", given["coupon_no"])["status"]
        revoked = self.admin.back_office.revoke_coupon("u-1002", given["coupon_no"], "the amount was wrong")
        assert "revoked" == revoked["status"]
        for _ in range(2):  # the second time it is the answer to a request that was lost
            instead = self.admin.back_office.reissue_coupon(
                "u-1002", template_id, "ticket-4711", "the amount was wrong", in_place_of=given["coupon_no"]
            )
            assert ("manual", "unused") == (instead["source"], instead["status"])
        assert 3 <= self.admin.templates.stats(template_id)["issued"]
        assert "ann@example.com" == wallet.set_contact("u-1001", "smtp", "ann@example.com")["address"]
        assert wallet.contact("u-1001", "smtp") == wallet.forget_contact("u-1001", "smtp")

    def approvals(self) -> None:
        """Approved, rejected, withdrawn."""
        desk = self.admin.templates
        first, second, third = (self.template(approval_required=True) for _ in range(3))
        [request] = desk.approvals(template_id=first)
        approved = self.boss.templates.approve(first, approval_id=request["approval_id"], comment="good")
        assert "active" == approved["status"]
        assert "draft" == self.boss.templates.reject(second, "half the budget, please")["status"]
        assert "draft" == desk.withdraw(third)["status"]

    def orders(self) -> None:
        """Quoted, locked, paid, returned; let go; told of by the order centre."""
        template_id = self.template()
        first = self.coupon(template_id)
        assert 2_000 == self.centre.orders.quote(ORDER)["discount"]
        self.centre.orders.lock("O-1", ORDER, [first])
        assert "redeemed" == self.centre.orders.redeem("O-1", "u-1001", "P-1")["status"]
        self.bought = (template_id, first)
        refunded = self.centre.orders.refund("O-1", "u-1001", "R-1", [{"line_id": "1", "quantity": 1}])
        assert 10_000 > refunded["refund_amount"]
        assert "redeemed" == self.centre.orders.read("O-1", "u-1001")["status"]
        second = self.coupon(template_id, request="second")
        self.centre.orders.lock("O-2", ORDER, [second], ttl_seconds=600)
        assert "released" == self.centre.orders.release("O-2", "u-1001", "buyer")["status"]
        self.centre.orders.lock("O-3", ORDER, [second])
        freed = self.admin.back_office.unlock_coupon("u-1001", second, "the buyer gave up", force=True)
        assert "unused" == freed["status"]
        told = self.centre.orders.tell("E-1", "O-2", "u-1001", "closed", from_now(), reason="buyer")
        assert "E-1" == told["event_id"]

    def statements(self) -> None:
        """A day's orders as the order centre knows them."""
        day = (datetime.now(UTC) - timedelta(days=3)).date().isoformat()
        rows = "order_no,user_id,status,paid_amount,discount_amount,currency\r\nO-1,u-1001,paid,8000,2000,CNY\r\n"
        assert 1 == self.centre.orders.put_statement(day, rows.encode())["rows"]
        assert day == self.centre.orders.statement(day)["date"]
        assert [day] == [each["date"] for each in self.centre.orders.statements()]

    def batches(self) -> None:
        """Of a file, and of tags."""
        desk, template_id = self.admin.batches, self.template(total_quantity=100)
        desk.set_tags("u-1001", ["vip", "new"])
        assert ["new", "vip"] == desk.tags("u-1001")["tags"]
        batch = desk.create(template_id, "regulars", users_csv("u1", "u2", "has space"))
        self.work()
        assert "done" == desk.read(batch["batch_no"])["status"]
        assert desk.failures_csv(batch["batch_no"]).startswith("row")
        later = desk.create_for_tags(template_id, "later", "vip", start_at=from_now(hours=5))["batch_no"]
        self.work()
        assert "paused" == desk.pause(later)["status"]
        assert desk.resume(later)["status"] in ("ready", "running")
        assert "cancelled" == desk.cancel(later)["status"]
        dear = self.template(total_quantity=10, approval_required=True)
        self.boss.templates.approve(dear)
        waiting = desk.create(dear, "dear", users_csv("u1"))["batch_no"]
        self.work()
        self.recorder.bear(lambda: self.boss.batches.approve(waiting))
        assert 3 == len(list(desk.every()))

    def codes(self) -> None:
        """Generated, fetched, exchanged, looked up, revoked."""
        desk = self.admin.codes
        batch = desk.generate(self.template(), 5, prefix="SAVE-", length=14)["code_batch_id"]
        run_generation(self.shop.services, int(batch))
        code = desk.fetch(batch).split()[1]
        assert "u-1001" == self.front.codes.exchange(code, "u-1001", "redeem-form-51")["user_id"]
        assert desk.look_up(code)["coupon_no"]
        assert batch == desk.read(batch)["code_batch_id"] == next(desk.every())["code_batch_id"]
        desk.revoke(batch)

    def lotteries(self) -> None:
        """Made, drawn from, stopped; one that a second person opens."""
        desk, template_id = self.admin.lotteries, self.template()
        prizes = [{"name": "20 off", "weight": 1_000_000, "template_id": template_id, "stock": 2}]
        body = {"name": "wheel", "start": from_now(minutes=-1), "end": from_now(hours=1), "prizes": prizes}
        lottery_id = desk.create(body)["lottery_id"]
        assert "20 off" == self.front.lotteries.draw(lottery_id, "u-1001", "wheel-form-3")["prize"]
        drain_draws(self.shop.services, int(lottery_id))
        assert 1 == len(list(desk.draws(lottery_id, user_id="u-1001")))
        paused = desk.pause(lottery_id)
        assert "paused" == paused["status"]
        change = {"version": paused["version"], "prizes": [{"prize_no": 1, "stock": 3}]}
        assert 2 == desk.change(lottery_id, change)["prizes"][0]["left"]
        assert "paused" != desk.resume(lottery_id)["status"]
        assert lottery_id in [each["lottery_id"] for each in desk.every()]
        assert desk.end(lottery_id)["status"] in ("ending", "ended")
        assert 1 == desk.read(lottery_id)["draws"]
        self.recorder.bear(lambda: self.boss.lotteries.approve(lottery_id))

    def risk(self) -> None:
        """A policy that holds claims, what is decided of them, lists and scores."""
        desk = self.admin.risk
        look = {"name": "look", "dimension": "user", "measure": "claims", "window_s": 60, "threshold": 0}
        assert 1 == desk.put_policy("tour", {"rules": [look | {"verdict": "review"}]}, if_version=0)["version"]
        template_id = self.template(risk_policy="tour")
        held = [self.front.claims.claim(template_id, user, "risk-form")["claim_id"] for user in ("u-7", "u-8")]
        self.shop.settle(template_id)
        assert set(held) == {each["claim_id"] for each in desk.reviews(state="held", template_id=template_id)}
        assert "approved" == desk.approve(held[0])["state"]
        assert "rejected" == desk.reject(held[1], "a farm")["state"]
        assert 2 == len(list(desk.verdicts(template_id=template_id, rule="look")))
        assert [2] == [each["claims"] for each in desk.policy_effect("tour")["rules"]]
        assert "d/1" == desk.put_entry("block", "device", "d/1", comment="a farm")["value"]
        assert "d/1" in [each["value"] for each in desk.entries("block", value="d")]
        assert "d/1" == desk.delete_entry("block", "device", "d/1")["value"]
        assert 900 == desk.put_score("u-7", 900)["score"] == desk.score("u-7")["score"]
        assert 1 == self.front.risk.ask_scores(["u-9"])["asked"]
        desk.put_policy("idle", {"rules": []})
        assert desk.policy("tour") in list(desk.policies())
        assert desk.delete_policy("idle")["version"] == next(iter(desk.policy_versions("idle")))["version"]

    def books(self) -> None:
        """The ledger, an adjustment, and a day's close."""
        template_id, coupon_no = self.bought
        office, day = self.admin.back_office, (datetime.now(UTC) - timedelta(days=3)).date().isoformat()
        adjusted = office.adjust(
            "ticket-4711",
            user_id="u-1001",
            order_no="O-1",
            coupon_no=coupon_no,
            amount=-500,
            reason="5.00 too much was taken off",
        )
        assert adjusted in list(office.ledger(template_id=template_id))
        assert adjusted == next(office.ledger(user_id="u-1001", order_no="O-1"))
        assert office.close_day(day) == office.day(day)
        assert office.day_csv(day).startswith("date,")
        assert day in [closed["date"] for closed in office.days()]
        assert "reopened" == office.reopen_day(day, "a late refund")["status"]

    def findings(self) -> None:
        """What differs, repaired or left."""
        office = self.admin.back_office
        run = office.reconcile("stock")
        assert run["run_id"] == office.reconciliation(run["run_id"])["run_id"]
        template_id = int(self.bought[0])
        clerk = ReconDesk(replace(self.shop.services), now=datetime.now(UTC))
        clerk.record([difference(), difference("template 8", template_id=template_id, repair=RepairName.PREHEAT)])
        assert 2 == len(list(office.reconciliations(kind="stock")))
        found = {each["subject"]: each["finding_id"] for each in office.findings(state="open")}
        assert 2 == len(office.findings_csv().splitlines()) - 1
        assert "template 7" == office.finding(found["template 7"])["subject"]
        assert "ignored" == office.ignore_finding(found["template 7"], "a test order of ours")["state"]
        assert "approved" == office.approve_finding(found["template 8"], comment="seen")["state"]

    def recalls(self) -> None:
        """All unused coupons of a template."""
        template_id = self.template()
        self.coupon(template_id)
        recall = self.admin.templates.recall(template_id, "the amount was wrong")["revocation_id"]
        perform_revocation(self.shop.services, int(recall))
        assert 1 == self.admin.templates.read_recall(template_id, recall)["revoked"]

    def keys_and_webhooks(self) -> None:
        """Made, used, ended; and what is in the audit log of all this."""
        office, webhook_id = self.admin.back_office, self.webhook["webhook_id"]
        made = office.make_key("storefront of the app", ["storefront"])
        assert made["key_id"] in [key["key_id"] for key in list(office.keys())]
        assert office.revoke_key(made["key_id"])["revoked_at"]
        relay_outbox(self.shop.services)
        deliver(self.shop.services, f"webhook:{webhook_id}")
        told = next(office.deliveries(webhook_id, state="delivered"))
        assert "pending" == office.replay_delivery(webhook_id, told["delivery_id"])["state"]
        assert [webhook_id] == [webhook["webhook_id"] for webhook in office.webhooks()]
        assert office.end_webhook(webhook_id)["disabled_at"]
        assert next(office.audit_log(subject=f"template:{self.bought[0]}"))

    def operations(self, broker: dramatiq.Broker) -> None:
        """How it is doing, jobs, and messages that were given up."""
        desk = self.admin.operations
        assert "ok" == desk.live()["status"]
        assert desk.ready()["parts"]
        assert "coupon_" in desk.metrics()
        assert desk.run_job("expire_coupons")["run_id"]
        assert "expire_coupons" in [job["name"] for job in desk.jobs()]
        for _ in range(2):
            broker.enqueue(Message("settle", "settle_claims", (1, 0), {}, {}))
        _give_up(broker)
        assert 2 == sum(queue["dead_letters"] for queue in desk.queues()["queues"])
        first, second = desk.dead_letters()
        assert "replayed" == desk.replay(first["id"])["status"]
        assert "discarded" == desk.discard(second["id"])["status"]

    def work(self) -> None:
        """The workers' part of batches."""
        work(self.shop.services, self.shop.services.post.sent)  # type: ignore[attr-defined]  # the test's post box


def worker_broker(shop: Shop) -> dramatiq.Broker:
    """The workers' broker, on the run's server."""
    broker = make_broker(shop.services.settings, for_workers=True)
    for queue in Queue:
        broker.declare_queue(queue.value)
    return broker


def _give_up(broker: dramatiq.Broker) -> None:
    consumer = broker.consume("settle", prefetch=100, timeout=100)
    while (message := next(consumer)) is not None:
        message.options.update(retries=4, traceback="psycopg2.errors.Boom\n")
        consumer.nack(message)
    consumer.close()
