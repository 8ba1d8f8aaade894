"""What the stores must hold after a load: A, B, E and F of FAULTS.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.support.history_books import StoreBooks, TemplateBooks, held_by_user

_LEGAL = {
    (None, "issue", "unused"),
    ("unused", "lock", "locked"),
    ("unused", "redeem", "redeemed"),
    ("unused", "expire", "expired"),
    ("unused", "revoke", "revoked"),
    ("unused", "transfer", "transferred"),
    ("locked", "redeem", "redeemed"),
    ("locked", "release", "unused"),
    ("redeemed", "refund", "unused"),
    ("redeemed", "refund", "expired"),
}
"""DESIGN 7, as the checker reads it: from, action, to."""


def over_issued(books: StoreBooks) -> Iterator[str]:
    """A: issued ≤ total per template, and the counter says how many."""
    for template_id, template in books.templates.items():
        issued = books.issued(template_id)
        if issued + template.row.reserved > template.row.total:
            yield f"template {template_id}: {issued} coupons of {template.row.total}"
        if issued != template.row.issued:
            yield f"template {template_id}: {issued} coupons, counted as {template.row.issued}"


def over_limit(books: StoreBooks) -> Iterator[str]:
    """B: coupons per user, and per user and local day, ≤ limit."""
    users = Counter((row.template_id, row.user_id) for row in books.coupons)
    days = Counter((row.template_id, row.user_id, row.day) for row in books.coupons)
    for (template_id, user_id), count in users.items():
        limit = books.templates[template_id].row.user_limit
        if limit is not None and count > limit:
            yield f"template {template_id} user {user_id}: {count} coupons, limit {limit}"
    for (template_id, user_id, day), count in days.items():
        limit = books.templates[template_id].row.daily_limit
        if limit is not None and count > limit:
            yield f"template {template_id} user {user_id} on {day}: {count} coupons, limit {limit}"


def not_conserved(books: StoreBooks) -> Iterator[str]:
    """E: total = stock + queued + issued + reserved, and the gate counts what each user has."""
    known = {row.coupon_id for row in books.coupons}
    for template_id, template in books.templates.items():
        if template.stock is None:
            yield f"template {template_id}: the gate is not warm"
            continue
        queued = sum(claim_id not in known for claim_id, _ in template.queued)
        parts = (template.stock, queued, books.issued(template_id), template.row.reserved)
        if sum(parts) != template.row.total:
            yield f"template {template_id}: {template.row.total} ≠ {' + '.join(map(str, parts))} (stock, queued, …)"
        yield from _miscounted(books, template_id, template)
        rejected = sum(row.template_id == template_id for row in books.rejections)
        if rejected != template.row.rejected:
            yield f"template {template_id}: {rejected} rejections, counted as {template.row.rejected}"


def _miscounted(books: StoreBooks, template_id: int, template: TemplateBooks) -> Iterator[str]:
    held = held_by_user(books, template_id)
    for user_id in held.keys() | template.taken.keys():
        if held[user_id] != template.taken.get(user_id, 0):
            counted = template.taken.get(user_id, 0)
            yield f"template {template_id} user {user_id}: has {held[user_id]}, the gate counts {counted}"


def illegal_flows(books: StoreBooks) -> Iterator[str]:
    """F: every flow is a legal path to the coupon's status, one row a transition."""
    for coupon in books.coupons:
        path = books.flows.get((coupon.user_id, coupon.coupon_id), [])
        problem = _problem_of(path, coupon.status)
        if problem:
            yield f"coupon {coupon.coupon_id}: {problem}"


def _problem_of(path: list[Any], status: str) -> str | None:
    if [row.flow_no for row in path] != list(range(1, len(path) + 1)) or not path:
        return f"flow rows {[row.flow_no for row in path]}"
    for row in path:
        if (row.from_status, row.action, row.to_status) not in _LEGAL:
            return f"{row.from_status} {row.action} {row.to_status}"
    if any(before.to_status != after.from_status for before, after in pairwise(path)):
        return "a gap in its flow"
    return None if path[-1].to_status == status else f"flow ends {path[-1].to_status}, status {status}"
