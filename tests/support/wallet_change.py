"""Everything that changes what a wallet shows: what goes before it, and the change; the test plays the workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import text

from coupon_workers.codes.code_generation import run_generation
from coupon_workers.coupons.archive import archive_coupons
from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.coupons.revocation import perform_revocation
from coupon_workers.orders.unlock_sweep import release_overdue_locks
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.runtime.services import Services
from tests.support.batch_worker import work
from tests.support.http_shop import Shop
from tests.support.lottery import coupon_prize, open_lottery
from tests.support.order_http import OrderCentre
from tests.support.reconciling import ReconDesk

REASON = {"reason": "a complaint"}


class Wallets:
    """A shop in which ``ann`` has a coupon of a transferable template, and ``bob`` has none."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.centre = OrderCentre(shop)
        self.template_id = shop.desk.open(transferable=True, restock_on_revoke=True, total_quantity=50)
        self.coupon_no = shop.front.claimed(self.template_id, "ann", "first")
        self.code = ""
        self.settle_draws: Callable[[], int] = lambda: 0
        self.settle()

    @property
    def services(self) -> Services:
        """The shop's."""
        return self.shop.services

    def settle(self) -> None:
        """The worker of claims."""
        self.shop.settle(self.template_id)

    def post(self, path: str, body: Any, status: int = 200) -> dict[str, Any]:
        """An operator's POST."""
        answer: dict[str, Any] = self.shop.desk.admin.ask("POST", path, body).ok(status)
        return answer

    def of_ann(self, action: str) -> str:
        """The address of an action on ann's coupon."""
        return f"/v1/users/ann/coupons/{self.coupon_no}/{action}"

    def execute(self, statement: str) -> None:
        """SQL behind everybody's back."""
        with self.services.engine.begin() as connection:
            connection.execute(text(statement))

    def later(self, **span: float) -> Any:
        """An instant from now."""
        return self.services.clock() + timedelta(**span)


class Change(NamedTuple):
    """``change`` is what a wallet must show; ``before`` has been done when it is looked at."""

    change: Callable[[Wallets], Any]
    before: Callable[[Wallets], Any] = lambda _: None


def _claim(wallets: Wallets) -> None:
    wallets.shop.front.claimed(wallets.template_id, "bob")


def _lock(wallets: Wallets) -> None:
    wallets.centre.lock("o1", [wallets.coupon_no]).ok()


def _redeem(wallets: Wallets) -> None:
    wallets.centre.redeem("o1").ok()


def _pay(wallets: Wallets) -> None:
    _lock(wallets)
    _redeem(wallets)


def _pay_directly(wallets: Wallets) -> None:
    order = {name: value for name, value in wallets.centre.order([wallets.coupon_no]).items() if name != "user_id"}
    wallets.centre.redeem("o2", **order).ok()


def _stage(wallets: Wallets) -> None:
    wallets.shop.desk.admin.ask("PUT", "/v1/users/bob/tags", {"tags": ["vip"]}).ok()
    wallets.post("/v1/batches", {"template_id": wallets.template_id, "name": "b", "tags": "vip"}, 202)


def _issue(wallets: Wallets) -> None:
    work(wallets.services, wallets.services.post.sent)  # type: ignore[attr-defined]  # it is the test's post box


def _order_codes(wallets: Wallets) -> None:
    batch = wallets.post("/v1/code-batches", {"template_id": wallets.template_id, "quantity": 1}, 202)["code_batch_id"]
    run_generation(wallets.services, int(batch))
    codes = wallets.shop.desk.admin.ask("GET", f"/v1/code-batches/{batch}/codes.csv").body.decode().split()
    wallets.code = codes[1]


def _exchange(wallets: Wallets) -> None:
    body = {"code": wallets.code, "user_id": "bob", "request_id": "r1"}
    wallets.shop.front.ask("POST", "/v1/codes/exchange", body).ok()


def _draw(wallets: Wallets) -> None:
    fair = open_lottery(wallets.services, [coupon_prize(int(wallets.template_id), 5)])
    fair.draw_each(["bob"])
    wallets.settle_draws = fair.drain


def _give(wallets: Wallets) -> None:
    wallets.shop.front.ask("POST", wallets.of_ann("transfer"), {"to_user_id": "bob"}).ok(201)


def _recall(wallets: Wallets) -> None:
    asked = wallets.post(f"/v1/templates/{wallets.template_id}/revoke", REASON, 202)
    perform_revocation(wallets.services, int(asked["revocation_id"]))


def _reissue(wallets: Wallets, **more: str) -> None:
    body = {"template_id": wallets.template_id, "request_id": "ticket-1"} | REASON | more
    wallets.post("/v1/users/ann/coupons", body, 201)


def _expire(wallets: Wallets) -> None:
    expire_coupons(wallets.services, wallets.later(days=8))


def _run_out(wallets: Wallets) -> None:
    _lock(wallets)
    wallets.execute("UPDATE coupon_order SET locked_at = now() - interval '1 hour', locked_until = now()")


def _break_lock(wallets: Wallets) -> None:
    """The order has let go, and the coupon does not know."""
    _lock(wallets)
    wallets.execute("UPDATE coupon_order SET status = 'released', released_at = now(), release_reason = 'lost'")
    wallets.execute("UPDATE coupon_use SET state = 'released'")


def _reconcile(wallets: Wallets) -> None:
    desk = ReconDesk(wallets.services, wallets.later(minutes=2))
    findings = desk.reconcile(ReconKind.STATE)
    assert FindingState.REPAIRED in {finding.state for finding in findings}


CHANGES = {
    "a claim is settled": Change(Wallets.settle, _claim),
    "a batch is issued": Change(_issue, _stage),
    "a code is exchanged": Change(_exchange, _order_codes),
    "a coupon is won": Change(lambda wallets: wallets.settle_draws(), _draw),
    "a coupon is given away": Change(_give),
    "a coupon is locked": Change(_lock),
    "a lock is redeemed": Change(_redeem, _lock),
    "a coupon is redeemed directly": Change(_pay_directly),
    "an order lets go": Change(lambda wallets: wallets.centre.release("o1").ok(), _lock),
    "an order is closed": Change(
        lambda wallets: wallets.centre.tell("e1", "o1", "closed", "2026-11-11T00:00:00Z").ok(), _lock
    ),
    "a lock runs out": Change(lambda wallets: release_overdue_locks(wallets.services), _run_out),
    "an order is returned": Change(lambda wallets: wallets.centre.refund("o1", "ref-1").ok(), _pay),
    "a coupon expires": Change(_expire),
    "a coupon is revoked": Change(lambda wallets: wallets.post(wallets.of_ann("revoke"), REASON)),
    "a coupon is given by hand": Change(_reissue),
    "a coupon takes another's place": Change(lambda wallets: _reissue(wallets, in_place_of=wallets.coupon_no)),
    "an operator frees a coupon": Change(
        lambda wallets: wallets.post(wallets.of_ann("unlock"), REASON | {"force": True}), _lock
    ),
    "a template is recalled": Change(_recall),
    "a repair frees a coupon": Change(_reconcile, _break_lock),
    "a coupon is archived": Change(lambda wallets: archive_coupons(wallets.services, wallets.later(days=900)), _expire),
    "a template has another name": Change(
        lambda wallets: wallets.shop.desk.change(wallets.template_id, name="Another").ok()
    ),
}
"""By what happens."""

NOT_FORGOTTEN = {"a template has another name"}
"""What nobody tells the wallets of: a template's owners are too many. Their pages run out."""
