"""What the stores hold of some templates, read by the checker's own statements: none of the product's code."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import redis
from sqlalchemy import Engine, text

_TEMPLATES = """
    SELECT template_id, total_quantity AS total, issued_quantity AS issued, reserved_quantity AS reserved,
           rejected_quantity AS rejected, per_user_limit AS user_limit, per_user_daily_limit AS daily_limit
      FROM coupon_template WHERE template_id = ANY(:ids)"""
_COUPONS = """
    SELECT c.coupon_id, c.template_id, c.user_id, c.request_id, c.status,
           CAST(c.claimed_at AT TIME ZONE t.timezone AS date) AS day
      FROM coupon c JOIN coupon_template t USING (template_id) WHERE c.template_id = ANY(:ids)"""
_REJECTIONS = """
    SELECT claim_id, template_id, user_id, request_id, reason FROM claim_rejection WHERE template_id = ANY(:ids)"""
_FLOWS = """
    SELECT f.user_id, f.coupon_id, f.flow_no, f.action, f.from_status, f.to_status
      FROM coupon_flow f WHERE EXISTS (SELECT FROM coupon c WHERE c.template_id = ANY(:ids)
                                          AND c.user_id = f.user_id AND c.coupon_id = f.coupon_id)
     ORDER BY f.coupon_id, f.user_id, f.flow_no"""


@dataclass(frozen=True, slots=True)
class TemplateBooks:
    """One template: its row in PostgreSQL, and what the gate in Redis holds. ``stock`` None: the gate is not warm."""

    row: Any
    stock: int | None
    queued: tuple[tuple[int, str], ...]
    """Claim id and user of each entry in the pending stream."""

    taken: dict[str, int]
    """User → how many coupons and queued claims the gate counts."""


@dataclass(frozen=True, slots=True)
class StoreBooks:
    """All rows by their template, and flow rows by their coupon."""

    templates: dict[int, TemplateBooks]
    coupons: list[Any]
    rejections: list[Any]
    flows: dict[tuple[str, int], list[Any]] = field(default_factory=dict)

    @property
    def ends(self) -> dict[int, str]:
        """Claim id → ``issued``, or the reason of its rejection."""
        ends = {row.claim_id: str(row.reason) for row in self.rejections}
        return ends | {row.coupon_id: "issued" for row in self.coupons}

    def issued(self, template_id: int) -> int:
        """Coupon rows of a template."""
        return sum(row.template_id == template_id for row in self.coupons)


def read_books(engine: Engine, stock: redis.Redis, template_ids: Sequence[int]) -> StoreBooks:
    """Read both stores while nothing moves."""
    ids = {"ids": list(template_ids)}
    with engine.connect() as connection:
        rows, coupons, rejections, flows = (
            list(connection.execute(text(statement), ids)) for statement in (_TEMPLATES, _COUPONS, _REJECTIONS, _FLOWS)
        )
    paths: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for flow in flows:
        paths[flow.user_id, flow.coupon_id].append(flow)
    templates = {row.template_id: _read_gate(stock, row) for row in rows}
    return StoreBooks(templates, coupons, rejections, dict(paths))


def pending_key(template_id: int) -> str:
    """The stream of accepted claims that are not settled: the checker's own spelling."""
    return f"cw:{{t{template_id}.0}}:pending"


def _read_gate(stock: redis.Redis, row: Any) -> TemplateBooks:
    prefix = f"cw:{{t{row.template_id}.0}}"
    left: Any = stock.get(f"{prefix}:stock") if stock.exists(f"{prefix}:generation") else None
    entries: Any = stock.xrange(pending_key(row.template_id))
    takers: Any = stock.hgetall(f"{prefix}:takers")
    return TemplateBooks(
        row,
        None if left is None else int(left),
        tuple((int(fields[b"c"]), fields[b"u"].decode()) for _, fields in entries if b"c" in fields),
        {user.decode(): int(value.split()[0]) for user, value in takers.items()},
    )


def held_by_user(books: StoreBooks, template_id: int) -> Counter[str]:
    """Coupons and queued claims of each user of a template; a claim that is both counts once."""
    held = {row.coupon_id: row.user_id for row in books.coupons if row.template_id == template_id}
    queued = dict(books.templates[template_id].queued)
    return Counter((held | queued).values())
