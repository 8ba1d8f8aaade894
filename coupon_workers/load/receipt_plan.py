"""What a receipts file asks for: its templates, its claims, and how many coupons must come of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from coupon_workers.load.claim_call import ClaimCall
from coupon_workers.load.discount_rate import template_terms
from coupon_workers.load.receipt import ReceiptCount, read_receipts

_SHORT_NAME = re.compile(r"[A-Za-z0-9._-]{1,24}")
_OTHER_RATE = "Discount_rate is not that of the coupon's first row"


@dataclass(frozen=True, slots=True)
class ReceiptTemplate:
    """The template of one ``Coupon_id``. ``expected``: the coupons that must be issued when all claims were heard."""

    coupon_id: str
    template_no: str
    discount_rate: str
    claims: int
    users: int
    expected: int


@dataclass(frozen=True, slots=True)
class ReceiptPlan:
    """A file read once: the templates it needs by ``Coupon_id``, and what its rows were."""

    path: Path
    stock: int
    limit: int
    templates: dict[str, ReceiptTemplate]
    count: ReceiptCount

    def claims(self, template_ids: dict[str, str]) -> Iterator[ClaimCall]:
        """A claim for each receipt, in the order of the file, streamed; ``template_ids`` by ``Coupon_id``.

        A claim's request id comes from what its row says, and from how often the file has said the same before: the
        same file replays the same requests.
        """
        seen: Counter[bytes] = Counter()
        for receipt in read_receipts(self.path, ReceiptCount()):
            if receipt.discount_rate != self.templates[receipt.coupon_id].discount_rate:
                continue
            content = _digest(*receipt[1:])
            seen[content] += 1
            request_id = f"receipt-{content.hex()}-{seen[content]}"
            yield ClaimCall(template_ids[receipt.coupon_id], receipt.user_id, request_id)


def plan_receipts(path: Path, *, stock: int, limit: int) -> ReceiptPlan:
    """Read a file and plan its replay with ``stock`` coupons a template and ``limit`` a user.

    Raises ``InvalidInput`` when the file lacks columns.
    """
    count = ReceiptCount()
    rates: dict[str, str] = {}
    wishes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for receipt in read_receipts(path, count):
        if rates.setdefault(receipt.coupon_id, receipt.discount_rate) != receipt.discount_rate:
            count.read -= 1
            count.note(receipt.row, _OTHER_RATE, count.bad)
            continue
        wishes[receipt.coupon_id][receipt.user_id] += 1
    templates = {
        coupon_id: ReceiptTemplate(
            coupon_id=coupon_id,
            template_no=_template_no(coupon_id, rates[coupon_id], stock, limit),
            discount_rate=rates[coupon_id],
            claims=users.total(),
            users=len(users),
            expected=min(stock, sum(min(limit, wanted) for wanted in users.values())),
        )
        for coupon_id, users in wishes.items()
    }
    return ReceiptPlan(path, stock, limit, templates, count)


def template_body(template: ReceiptTemplate, *, stock: int, limit: int, start: str, end: str) -> dict[str, Any]:
    """The body of ``POST /v1/templates``; ``start`` and ``end`` are the claim window, in RFC 3339."""
    return {
        "template_no": template.template_no,
        "name": f"Receipts of coupon {template.coupon_id}"[:64],
        "currency": "CNY",
        **template_terms(template.discount_rate),
        "total_quantity": stock,
        "per_user_limit": limit,
        "claim_start": start,
        "claim_end": end,
        "validity": {"mode": "relative", "days": 30},
        "timezone": "Asia/Shanghai",
    }


def _template_no(coupon_id: str, discount_rate: str, stock: int, limit: int) -> str:
    """The same for the same coupon and options, so that a second run finds the templates of the first."""
    name = coupon_id if _SHORT_NAME.fullmatch(coupon_id) else _digest(coupon_id).hex()
    return f"receipts-{name}-{discount_rate.replace(':', '-')}-s{stock}-l{limit}"


def _digest(*parts: str) -> bytes:
    """Twelve bytes: among ten million rows two differing ones share theirs with a chance of 1 in 10**15."""
    return blake2b("\x00".join(parts).encode(errors="surrogateescape"), digest_size=12).digest()
