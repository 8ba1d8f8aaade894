"""Claims of a template with a risk policy: what rules, lists and scores let through (docs/risk.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.risk.listing import forget_entries, put_entry, read_entries, take_off
from coupon_workers.risk.policy_desk import delete_policy, put_policy
from coupon_workers.risk.policy_reading import read_policy, read_versions
from coupon_workers.risk.score import ask_scores, put_score, read_score, score_due
from coupon_workers.risk.scorer import Score
from coupon_workers.risk.subject_load import bring_missed
from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.risk.verdict_log import forget_verdicts
from coupon_workers.risk.verdict_reading import read_verdicts
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import publish_template
from tests.support.risk import POLICY, claim_from, policy, risky_sale, rule
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.template import insert_template

ACCEPTED, REFUSED = ClaimOutcome.ACCEPTED, ClaimOutcome.RISK_REJECTED


def outcomes(sale: Sale, count: int, **source: str) -> list[ClaimOutcome]:
    """Of a claim each of so many users from one source."""
    return [claim_from(sale, f"u{number}", **source).outcome for number in range(count)]


def test_a_thousand_accounts_on_one_device_get_what_the_threshold_lets_through(services: Services) -> None:
    """The rest is refused by the rule's name, takes nothing, and its log is bounded by what comes."""
    sale = risky_sale(services, rule("burst", threshold=5), total_quantity=1_000)

    got = outcomes(sale, 1_000, device="farm-1")
    decision = claim_from(sale, "late", device="farm-1")
    sale.drain()
    done = sweep_risk(services)

    assert [ACCEPTED] * 5 + [REFUSED] * 995 == got
    assert ("burst", 0) == (decision.rule, decision.claim_id)
    assert 995 == sale.stock
    assert 996 == done["logged"]
    assert [(996,)] == sale.rows("SELECT count(*) FROM risk_verdict WHERE template_id = :template_id")
    assert 1 == len(list(services.redis.scan_iter("*risk:count:*")))
    assert_sound(services)


def test_what_is_shadowed_is_only_recorded(services: Services) -> None:
    """The claim is issued, and its verdict is in the log once."""
    sale = risky_sale(services, rule("burst", threshold=0, shadow=True))

    decision = claim_from(sale, "ann", device="d1", ip="203.0.113.7")
    sale.drain()
    sale.drain()

    (verdict,) = read_verdicts(services, limit=10)
    assert ACCEPTED == decision.outcome
    assert {decision.claim_id: "ann"} == sale.coupons()
    assert ("burst", "reject", True) == (verdict.rule, verdict.verdict, verdict.shadow)
    assert (str(decision.claim_id), "d1", "203.0.113.7") == (verdict.claim_id, verdict.device_id, verdict.ip)


def test_face_values_of_random_amounts_are_summed_as_they_are_drawn(services: Services) -> None:
    """What a refused claim would have drawn is the next one's."""
    template_id = insert_template(
        services.engine,
        type="random_amount",
        amount_minor=None,
        pool={"min": 100, "max": 100, "budget": 1_000, "distribution": "uniform"},
        risk_policy=POLICY,
        status="draft",
    )
    limit = rule("worth", measure="face_value_minor", threshold=300)
    put_policy(services, POLICY, policy(limit), None)
    publish_template(services, template_id)
    sale = Sale(services, template_id, open_sale(services, template_id=7_099).gate)

    got = outcomes(sale, 5, device="d1")
    sale.drain()

    assert [ACCEPTED] * 3 + [REFUSED] * 2 == got
    assert 7 == services.redis.llen(sale.keys.pool)
    assert_sound(services)


def test_blocked_ones_are_refused_and_allowed_ones_are_not_weighed_until_it_expires(services: Services) -> None:
    """Whatever the rules say; who is blocked in one dimension is refused though another is allowed."""
    sale = risky_sale(services, rule("none", threshold=0))
    soon = services.clock() + timedelta(hours=1)
    put_entry(services, "allow", "device", "kiosk", "key-1", expires_at=soon)
    put_entry(services, "block", "ip", "2001:db8::77", "key-1", comment="a farm")

    allowed = claim_from(sale, "ann", device="kiosk")
    blocked = claim_from(sale, "bob", device="kiosk", ip="2001:db8::")
    expired = claim_from(sale, "cid", device="kiosk", now_ms=int(soon.timestamp() * 1000) + 1)
    take_off(services, "block", "ip", "2001:db8::77", "key-1")
    again = claim_from(sale, "bob", device="kiosk", ip="2001:db8::")

    assert [ACCEPTED, REFUSED, REFUSED, ACCEPTED] == [d.outcome for d in (allowed, blocked, expired, again)]
    assert ["block_list", "none"] == [blocked.rule, expired.rule]
    assert ["kiosk"] == [entry.value for entry in read_entries(services, "allow", limit=10)]
    assert [] == read_entries(services, "block", limit=10)
    with pytest.raises(NotFound, match="not on the block list"):
        take_off(services, "block", "device", "kiosk", "key-1")


def test_lists_and_scores_are_there_again_after_redis_has_lost_its_memory(services: Services) -> None:
    """The preheat brings them before the gate opens: nobody slips through. Counters begin anew."""
    sale = risky_sale(services, rule("risky", measure="score", threshold=700), rule("burst", threshold=1))
    put_entry(services, "block", "user", "eve", "key-1")
    put_score(services, "mal", 900, "key-1")
    claim_from(sale, "ann", device="d1")
    sale.drain()

    services.redis.flushall()
    sale.preheat()

    assert "block_list" == claim_from(sale, "eve").rule
    assert "risky" == claim_from(sale, "mal").rule
    assert ACCEPTED == claim_from(sale, "bob", device="d1").outcome


def test_what_a_gate_has_missed_the_sweep_brings(services: Services) -> None:
    """A process that died between its commit and telling the gates costs seconds."""
    sale = risky_sale(services, rule())
    put_entry(services, "block", "user", "eve", "key-1")
    services.redis.delete(sale.keys.risk_list)

    before = claim_from(sale, "eve", request="r1").outcome
    brought = [bring_missed(services), bring_missed(services)]

    assert ACCEPTED == before
    assert [1, 0] == brought
    assert REFUSED == claim_from(sale, "eve", request="r2").outcome


@pytest.mark.parametrize(("missing", "expected"), [("allow", ACCEPTED), ("reject", REFUSED)])
def test_a_policy_says_what_becomes_of_a_user_without_a_score(
    services: Services, missing: str, expected: ClaimOutcome
) -> None:
    """Fail open or closed."""
    sale = risky_sale(services, rule("risky", measure="score", threshold=700), policy={"missing_score": missing})
    put_score(services, "low", 10, "key-1")
    put_score(services, "high", 701, "key-1")

    assert ACCEPTED == claim_from(sale, "low").outcome
    assert "risky" == claim_from(sale, "high").rule
    assert expected == claim_from(sale, "new").outcome


class _Shop:
    """A scorer that knows two users."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def score_users(self, user_ids: Any) -> dict[str, Score]:
        """``bad`` is bad; of ``odd`` it says what is no score."""
        self.asked += user_ids
        return {"bad": Score(950), "odd": Score(5_000), "stranger": Score(1)}


def test_the_shops_scorer_looks_at_accounts_before_they_claim(services: Services) -> None:
    """Once; who is not known, or wrongly, is looked at again later."""
    sale = risky_sale(services, rule("risky", measure="score", threshold=700))
    scorer = _Shop()
    ask_scores(services, ["bad", "odd", "new", "bad"])

    known = [score_due(services, scorer), score_due(services, scorer)]
    ask_scores(services, ["bad"])

    assert [1, 0] == known
    assert ["bad", "new", "odd"] == sorted(scorer.asked)
    assert 0 == score_due(services, scorer)
    assert (950, "scorer") == (read_score(services, "bad").score, read_score(services, "bad").changed_by)
    assert "risky" == claim_from(sale, "bad").rule


def test_a_new_version_of_a_policy_is_in_force_at_once(services: Services) -> None:
    """Every version stays readable; one that is named is not taken away."""
    sale = risky_sale(services, rule("burst", threshold=0))
    assert REFUSED == claim_from(sale, "ann", device="d1").outcome

    put_policy(services, POLICY, policy(rule("burst", threshold=9)), "key-2", if_version=1)
    same = put_policy(services, POLICY, policy(rule("burst", threshold=9)), "key-3")

    assert ACCEPTED == claim_from(sale, "ann", device="d1").outcome
    assert (2, "key-2") == (same["version"], same["changed_by"])
    assert [2, 1] == [version.version for version in read_versions(services, POLICY, limit=10)]
    with pytest.raises(Conflict, match="another version"):
        put_policy(services, POLICY, policy(), "key-1", if_version=1)
    with pytest.raises(Conflict, match="templates name"):
        delete_policy(services, POLICY, "key-1")


def test_a_policy_nobody_names_is_taken_away_and_its_versions_go_on(services: Services) -> None:
    """Made again, it has the next number."""
    put_policy(services, "idle", policy(rule()), "key-1")

    gone = delete_policy(services, "idle", "key-1")
    made = put_policy(services, "idle", policy(rule()), "key-1", if_version=0)

    assert (2, 3) == (gone["version"], made["version"])
    assert 3 == read_policy(services, "idle").version
    with pytest.raises(NotFound):
        read_policy(services, "other")


def test_a_template_is_not_published_with_a_policy_that_is_not_there(services: Services) -> None:
    """It would be claimed from without rules."""
    template_id = insert_template(services.engine, status="draft", risk_policy="nowhere")

    with pytest.raises(InvalidInput, match="risk_policy"):
        publish_template(services, template_id)


def test_a_full_log_counts_what_it_has_no_room_for(services: Services) -> None:
    """An attack does not fill the memory of Redis."""
    sale = risky_sale(services, rule("none", threshold=0))
    entries = services.redis.pipeline()
    for _ in range(10_000):
        entries.xadd(sale.keys.risk_log, {"t": 1, "c": 1, "u": "u", "k": "reject none", "i": "d", "p": "", "a": ""})
    entries.execute()

    got = outcomes(sale, 3, device="d1")
    length = services.redis.xlen(sale.keys.risk_log)
    sweep_risk(services)

    assert [REFUSED] * 3 == got
    assert 10_000 == length
    assert [(3,)] == sale.rows("SELECT dropped FROM risk_log_loss WHERE template_id = :template_id")
    assert 0 == services.redis.xlen(sale.keys.risk_log)


def test_old_verdicts_and_entries_are_forgotten(services: Services) -> None:
    """After ninety and thirty days."""
    sale = risky_sale(services, rule("none", threshold=0))
    claim_from(sale, "ann", device="d1")
    sweep_risk(services)
    put_entry(services, "block", "user", "eve", None)
    take_off(services, "block", "user", "eve", None)

    late = services.clock() + timedelta(days=91)

    assert (1, 1) == (forget_verdicts(services, late), forget_entries(services, late))
    assert [] == read_verdicts(services, limit=10)


@pytest.mark.parametrize("over", ["status = 'ended', claim_end = now() - interval '1 s'", "status = 'offline'"])
def test_who_was_refused_at_a_sales_last_moment_is_in_the_log(services: Services, over: str) -> None:
    """The sweep comes after the end."""
    sale = risky_sale(services, rule("none", threshold=0))
    claim_from(sale, "ann", device="d1")
    with services.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE coupon_template SET {over}")

    logged = [sweep_risk(services)["logged"], sweep_risk(services)["logged"]]

    assert [1, 0] == logged
    assert ["ann"] == [verdict.user_id for verdict in read_verdicts(services, limit=10)]
