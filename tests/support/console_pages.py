"""Every page of the console with something to see on it: an example is a function that makes it, and says its path."""

from __future__ import annotations

from collections.abc import Callable

from coupon_workers.access.api_key import create_key, revoke_key
from coupon_workers.claiming.live_tally import live_key
from coupon_workers.claiming.live_view import last_whole_second
from coupon_workers.codes.code_generation import run_generation
from tests.support import console_lottery_pages as lotteries
from tests.support import console_money_pages as money
from tests.support import console_risk_pages as risk
from tests.support.batch_desk import BatchDesk, users_csv
from tests.support.batch_worker import sent_by, work
from tests.support.dead_letters import bury
from tests.support.gift import give
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from tests.support.order_http import OrderCentre

Example = Callable[[Shop], str]


def _login(shop: Shop) -> str:
    return "/login"


def _templates(shop: Shop) -> str:
    shop.desk.open(name="满100减20 双十一")
    shop.desk.open(name="15 % off", type="percent_off", amount=None, percent_off=1500, max_discount=5000)
    shop.desk.draft(name="Five off", type="cash", amount=500, threshold=0)
    return "/templates"


def _running(shop: Shop) -> str:
    """A campaign with claims of every second of the last minutes, on their way."""
    template_id = shop.desk.open(name="满100减20 双十一", total_quantity=4_000)
    now = last_whole_second(shop.services)
    for back in range(280):
        second = now - back
        counts = {"ACCEPTED": 20 + 15 * (back % 7), "SOLD_OUT": back // 4, "LIMIT_REACHED": 12, "REPLAYED": 3}
        named = {f"{second}:{outcome}": number for outcome, number in counts.items()}
        for field, number in named.items():
            shop.services.redis.hset(live_key(int(template_id), second), field, number)
    for number in range(30):
        shop.front.claim(template_id, f"u-{number}").ok(202)
    shop.settle(template_id)
    for number in range(7):
        shop.front.claim(template_id, f"late-{number}").ok(202)
    return template_id


def _live(shop: Shop) -> str:
    _running(shop)
    shop.desk.open(name="Tomorrow", claim_start=from_now(hours=20))
    return "/live"


def _live_template(shop: Shop) -> str:
    return f"/live/{_running(shop)}"


def _template(shop: Shop) -> str:
    return f"/templates/{_running(shop)}"


def _new_template(shop: Shop) -> str:
    return "/templates/new"


def _edit_template(shop: Shop) -> str:
    scope = {"products": {"include": ["p-1", "p-7"]}, "channels": ["app"]}
    pool = {"min": 100, "max": 2_000, "budget": 5_000}
    draft = shop.desk.draft(name="Lucky", type="random_amount", amount=None, threshold=0, pool=pool, scope=scope)
    return f"/templates/{draft}/edit"


def _approvals(shop: Shop) -> str:
    shop.desk.open(name="满100减20 双十一", approval_required=True)
    return "/approvals?state=all"


def _batch_desk(shop: Shop) -> tuple[BatchDesk, str]:
    """Somebody who makes batches, and a template for them."""
    return BatchDesk(shop.desk.admin), shop.desk.open(name="满100减20 双十一", total_quantity=9_000)


def _batches(shop: Shop) -> str:
    """One that is through, one in its midst, one that failed, one that waits for a second person."""
    _batch(shop)
    desk, template_id = _batch_desk(shop)
    desk.post(template_id, users_csv("ann", "ann", "b c"), {"name": "A few"}).ok(202)
    work(shop.services, sent_by(shop.services))
    desk.post_tags(template_id, "nobody-has-this", name="Nobody").ok(202)
    work(shop.services, sent_by(shop.services))
    desk.made(template_id, "ann", name="Just now")
    return "/batches"


def _batch(shop: Shop) -> str:
    """One in its midst."""
    desk, template_id = _batch_desk(shop)
    users = [*(f"u-{number}" for number in range(3_000)), "not a user", "u-1", "u-2"]
    batch_no = desk.made(template_id, *users, name="Regulars of the north")
    work(shop.services, sent_by(shop.services), most=3)
    return f"/batches/{batch_no}"


def _new_batch(shop: Shop) -> str:
    shop.desk.open(name="满100减20 双十一")
    return "/batches/new"


def _users(shop: Shop) -> str:
    """A wallet with a coupon of each sort, and its user's other affairs."""
    counter = OrderCentre(shop)
    counter.coupon("r1", total_quantity=50)
    locked, paid = counter.coupon("r2"), counter.coupon("r3")
    counter.lock("order-7", [locked]).ok()
    counter.lock("order-8", [paid]).ok()
    counter.redeem("order-8").ok()
    counter.coupon("r4", type="percent_off", amount=None, percent_off=1_500, max_discount=5_000, name="15 % off")
    return "/users?q=ann"


def _coupon(shop: Shop) -> str:
    coupon_no = int(OrderCentre(shop).coupon(transferable=True, name="满100减20 双十一"))
    coupon_no = give(shop.services, "ann", coupon_no, "ben")
    return f"/coupons/{give(shop.services, 'ben', coupon_no, 'cleo')}"


def _queues(shop: Shop) -> str:
    _running(shop)
    bury(shop)
    return "/queues"


def _dead_letters(shop: Shop) -> str:
    bury(shop)
    return "/dead-letters"


def _jobs(shop: Shop) -> str:
    return "/jobs"


def _audit(shop: Shop) -> str:
    template_id = shop.desk.open(name="满100减20 双十一")
    shop.desk.change(template_id, total_quantity=20).ok()
    shop.desk.act(template_id, "pause").ok()
    return "/audit"


def _keys(shop: Shop) -> str:
    create_key(shop.services.engine, name="warehouse", scopes=["orders"], signed=True)
    gone = create_key(shop.services.engine, name="a former storefront", scopes=["storefront"])
    revoke_key(shop.services.engine, gone.record.key_id)
    return "/keys"


def _new_key(shop: Shop) -> str:
    return "/keys/new"


def _code_batches(shop: Shop) -> str:
    _code_batch(shop)
    _codes(shop, 40_000)
    return "/code-batches"


def _code_batch(shop: Shop) -> str:
    """One whose codes wait to be fetched."""
    number = _codes(shop, 500)
    run_generation(shop.services, int(number))
    return f"/code-batches/{number}"


def _codes(shop: Shop, quantity: int) -> str:
    body = {"template_id": shop.desk.open(name="满100减20 双十一", total_quantity=90_000), "quantity": quantity}
    answer = shop.desk.admin.ask("POST", "/v1/code-batches", body | {"prefix": "GIFT-", "length": 14}).ok(202)
    return str(answer["code_batch_id"])


def _new_code_batch(shop: Shop) -> str:
    shop.desk.open(name="满100减20 双十一")
    return "/code-batches/new"


EXAMPLES: dict[str, Example] = {
    "login": _login,
    "live": _live,
    "live_template": _live_template,
    "templates": _templates,
    "template": _template,
    "new_template": _new_template,
    "edit_template": _edit_template,
    "approvals": _approvals,
    "batches": _batches,
    "batch": _batch,
    "new_batch": _new_batch,
    "users": _users,
    "coupon": _coupon,
    "queues": _queues,
    "dead_letters": _dead_letters,
    "jobs": _jobs,
    "audit": _audit,
    "keys": _keys,
    "new_key": _new_key,
    "findings": money.findings_page,
    "finding": money.finding_page,
    "daily_closes": money.daily_closes_page,
    "daily_close": money.daily_close_page,
    "ledger": money.ledger_page,
    "order_statements": money.statements_page,
    "order_statement": money.statement_page,
    "reconciliations": money.reconciliations_page,
    "reconciliation": money.reconciliation_page,
    "code_batches": _code_batches,
    "code_batch": _code_batch,
    "new_code_batch": _new_code_batch,
    "lotteries": lotteries.lotteries_page,
    "lottery": lotteries.lottery_page,
    "edit_lottery": lotteries.edit_lottery_page,
    "new_lottery": lotteries.new_lottery_page,
    "risk_policies": risk.policies_page,
    "risk_policy": risk.policy_page,
    "edit_risk_policy": risk.edit_policy_page,
    "new_risk_policy": lambda shop: "/new-risk-policy",
    "risk_lists": risk.lists_page,
    "risk_reviews": risk.reviews_page,
    "risk_verdicts": risk.verdicts_page,
    "code_lookup": lambda shop: "/codes/lookup",
}
"""By the name of the view. A page that is not here fails the tests."""

LED_ON = {
    "start": "leads to the first page",
    "nowhere": "is no page",
    "free_coupon_again": "leads to its coupon",
    "static_file": "a file",
    "batch_failures": "a file",
    "findings_file": "a file",
    "daily_close_file": "a file",
}
"""Views that show nothing of their own, with the reason."""
