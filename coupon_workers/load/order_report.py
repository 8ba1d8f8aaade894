"""A load of order calls judged: equal calls, equal answers; nothing but what the contract allows; coupons where their
stories left them; never more paid back than was paid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from rich.table import Table
from sqlalchemy import text

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.reading import snapshot
from coupon_workers.checking.report import Invariant
from coupon_workers.load.order_client import NO_ANSWER, HeardCall
from coupon_workers.load.order_plan import CouponLife
from coupon_workers.load.percentile import percentile
from coupon_workers.runtime.services import Services

EQUAL = "equal_order_answers"
ENDS = "orders_as_told"

_FREE = text(
    "SELECT user_id, coupon_id FROM coupon"
    " WHERE template_id = ANY(CAST(:template_ids AS bigint[])) AND status = 'unused' ORDER BY coupon_id"
)
_STATUSES = text(
    "SELECT coupon_id, status FROM coupon WHERE coupon_id = ANY(CAST(:coupon_ids AS bigint[])) AND status <> 'expired'"
)


def free_coupons(services: Services, template_ids: Sequence[int]) -> list[tuple[str, int]]:
    """User and number of each coupon of the templates that may be used. Raises ``StoreUnavailable``."""
    with snapshot(services) as connection:
        found = connection.execute(_FREE, {"template_ids": list(template_ids)})
        return [(row.user_id, row.coupon_id) for row in found]


def order_rules(heard: Sequence[HeardCall], lives: Sequence[CouponLife]) -> tuple[Invariant, ...]:
    """The rules that such a load must keep, beside those of the stores."""
    return (
        Invariant(
            EQUAL,
            "an order call sent again has the same answer, and no call one that the contract has not",
            lambda _: list(_contradictions(heard))[:BREACH_LIMIT],
        ),
        Invariant(ENDS, "each coupon stands where its orders left it", partial(_other_ends, lives=lives)),
    )


def _contradictions(heard: Sequence[HeardCall]) -> Iterator[Breach]:
    answers: dict[tuple[object, ...], object] = {}
    for each in heard:
        call = each.call
        if each.status == NO_ANSWER:
            yield Breach(EQUAL, call.subject, "an answer in the end", "none")
        elif each.status not in call.allowed:
            found = f"{each.status} {each.body[:200].decode(errors='replace')}"
            yield Breach(EQUAL, call.subject, " or ".join(map(str, sorted(call.allowed))), found)
        elif each.status == 200:
            key = (call.life, call.step, call.target, json.dumps(call.body, sort_keys=True))
            answer = json.loads(each.body)
            first = answers.setdefault(key, answer)
            if first != answer:
                yield Breach(EQUAL, call.subject, f"{first}", f"{answer}")


def _other_ends(services: Services, *, lives: Sequence[CouponLife]) -> list[Breach]:
    with snapshot(services) as connection:
        found = connection.execute(_STATUSES, {"coupon_ids": [life.coupon_id for life in lives]})
        statuses = {row.coupon_id: row.status for row in found}
    return [
        Breach(ENDS, f"coupon {life.coupon_id} user {life.user_id}", life.ends, statuses[life.coupon_id])
        for life in lives
        if statuses.get(life.coupon_id, life.ends) != life.ends
    ][:BREACH_LIMIT]


def order_table(heard: Sequence[HeardCall]) -> Table:
    """Calls by name and status, for people."""
    table = Table(title="Orders over HTTP", title_justify="left")
    table.add_column("call")
    table.add_column("status")
    table.add_column("count", justify="right")
    counts = Counter((each.call.name, each.status) for each in heard)
    for (name, status), calls in sorted(counts.items()):
        table.add_row(name, str(status or "never answered"), f"{calls:,}")
    table.add_section()
    table.add_row("sent again", "answer lost, or told to wait", f"{sum(each.attempts - 1 for each in heard):,}")
    ascending = sorted(each.answer_ms for each in heard if each.status != NO_ANSWER)
    p50_ms, p99_ms = percentile(ascending, 50), percentile(ascending, 99)
    if p50_ms is not None and p99_ms is not None:
        table.add_row("answer", "p50 / p99", f"{p50_ms:,.1f} / {p99_ms:,.1f} ms")
    return table
