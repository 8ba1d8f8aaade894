"""Stock, template by template: the gate, its queue, the rows and the counters (DESIGN 3.1, 3.2, 3.4, 10).

Neither the gate nor the counters have a history: they are compared as they are when they are read, of templates that
were there at the moment in question. The database is read in one snapshot; of the gate something is said only when
it held still meanwhile, and stays so for as long as ``checking/patience.py`` has patience.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, datetime

from coupon_workers.checking.patience import PATIENCE_S, looks
from coupon_workers.checking.reading import snapshot
from coupon_workers.reconciliation.difference import MOST, Reading
from coupon_workers.reconciliation.gate_books import Mark, read_gate, read_marks, warm_templates
from coupon_workers.reconciliation.stock_books import Books, read_books, read_counters
from coupon_workers.reconciliation.stock_case import StockCase, Verdict
from coupon_workers.runtime.services import Services


def stock_differences(
    services: Services, as_of: datetime, day: date | None, *, patience_s: float = PATIENCE_S
) -> Reading:
    """Templates whose units are not where the books say (see ``Reader``); ``examined`` are templates.

    One that does not hold still is looked at again as soon as it has done so for a moment; one that differs between
    the stores, at the end of the patience.
    """
    verdicts, marks = _look(services, as_of, None)
    for last in looks(patience_s):
        wanted = [template_id for template_id, verdict in verdicts.items() if verdict.may_change]
        if not wanted:
            break
        before, marks = marks, read_marks(services, warm_templates(services, wanted))
        if not last:
            wanted = [each for each in wanted if marks.get(each) == before.get(each) and not verdicts[each].between]
        again, seen = _look(services, as_of, wanted) if wanted else ({}, {})
        verdicts |= again
        marks |= seen
    differences = [each for _, verdict in sorted(verdicts.items()) for each in (*verdict.differences, *verdict.between)]
    unjudged = frozenset(subject for verdict in verdicts.values() for subject in verdict.unjudged)
    return Reading(differences[: MOST + 1], len(verdicts), unjudged)


def _look(
    services: Services, as_of: datetime, template_ids: Collection[int] | None
) -> tuple[dict[int, Verdict], dict[int, Mark]]:
    """What is to be said of the templates, or of all; and the marks of their gates at the end."""
    warm = warm_templates(services, template_ids)
    before = read_marks(services, warm)
    with snapshot(services) as connection:
        books = [each for each in read_books(connection, template_ids, warm) if _was_there(each, as_of)]
    named = {each.counters.template_id: each for each in books}
    gates = {
        template_id: read_gate(services, warm[template_id], before[template_id])
        for template_id in named
        if template_id in warm
    }
    after = read_marks(services, warm)
    with snapshot(services) as connection:
        counters = {each.template_id: each for each in read_counters(connection, template_ids)}
    verdicts = {}
    for template_id, each in named.items():
        steady = before.get(template_id) == after.get(template_id) and counters.get(template_id) == each.counters
        verdicts[template_id] = StockCase(services, as_of, each, gates.get(template_id), steady).judge()
    return verdicts, after


def _was_there(books: Books, as_of: datetime) -> bool:
    return books.counters.created_at is None or books.counters.created_at <= as_of
