"""A sale under a risk policy that many accounts on one device and behind one address attack."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.table import Table
from sqlalchemy import text

from coupon_workers.checking.breach import Breach
from coupon_workers.checking.reading import snapshot
from coupon_workers.checking.report import Invariant
from coupon_workers.client.error import Conflict
from coupon_workers.demo.guarded_crowd import (
    FARM_DEVICE,
    FARM_IP,
    POLICY,
    crowd_of,
    crowds,
    first_wave,
    second_wave,
)
from coupon_workers.demo.stage import Stage
from coupon_workers.demo.traffic import Traffic
from coupon_workers.load.admin_call import AdminCall
from coupon_workers.load.history import ClaimHistory
from coupon_workers.runtime.services import Services

RULE = "attack_contained"
COUPONS_A_STEP = 150
"""More than all accounts together: what an attacker does not get, the rules have kept from him."""

REFUSED = "RISK_REJECTED"

_OWNERS = text("SELECT user_id FROM coupon WHERE template_id = :template_id")


class GuardedStory:
    """Two waves: the crush itself, and the farms again after the operator has put them on the block list."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._crowds = crowds(stage.scale)
        self._template_id = ""
        self._sent: Counter[str] = Counter()
        self._stopped: Counter[tuple[str, str]] = Counter()
        self._reviews: list[dict[str, Any]] = []

    def prepare(self) -> None:
        """The policy, then a template that names it."""
        policy = f"{self._stage.run}-doorkeeper"
        self._stage.client.risk.put_policy(policy, POLICY)
        terms = {"type": "cash", "amount": 1_000, "total_quantity": COUPONS_A_STEP * self._stage.scale}
        self._template_id = self._stage.open_template("guarded", per_user_limit=1, risk_policy=policy, **terms)

    def play(self, traffic: Traffic) -> None:
        """Both waves, and between them the operator's two entries."""
        stage = self._stage
        traffic.claim(first_wave(self._crowds, self._template_id, run=stage.run, seed=stage.seed))
        traffic.operate([_entry("device", FARM_DEVICE), _entry("ip", FARM_IP)])
        traffic.claim(second_wave(self._crowds, self._template_id, run=stage.run))
        self._count(traffic.history)

    def end(self) -> None:
        """The operator decides about what was held: who comes from where the block list says goes empty-handed."""
        risk = self._stage.client.risk
        for review in list(risk.reviews(state="held", template_id=self._template_id)):
            try:
                if review["ip"] == FARM_IP or review["device_id"] == FARM_DEVICE:
                    risk.reject(review["claim_id"], "a farm of accounts")
                else:
                    risk.approve(review["claim_id"], comment="people of one office")
            except Conflict as conflict:
                if conflict.code != "ALREADY_DECIDED":  # the answer to the first try was lost
                    raise
        self._reviews = list(risk.reviews(template_id=self._template_id))

    def rules(self) -> tuple[Invariant, ...]:
        """The farms have what the policy lets through, the others theirs."""
        says = "a farm has no coupon beyond what the policy lets through, every honest user has one"
        return (Invariant(RULE, says, self._out_of_bounds),)

    def tables(self) -> list[Table]:
        """What each crowd got, by what it was stopped, and what became of the claims that were held."""
        return [self._crowd_table(), self._rule_table(), self._review_table()]

    def coupons(self, services: Services) -> Counter[str]:
        """Coupons by crowd. Raises ``StoreUnavailable``."""
        with snapshot(services) as connection:
            owners = connection.execute(_OWNERS, {"template_id": int(self._template_id)}).scalars()
            return Counter(crowd_of(user_id) for user_id in owners)

    def _count(self, history: ClaimHistory) -> None:
        for heard in history:
            if heard.call.template_id != self._template_id:
                continue
            crowd = crowd_of(heard.call.user_id)
            self._sent[crowd] += 1
            if heard.status >= 400:
                self._stopped[crowd, heard.word.removeprefix(REFUSED).strip()] += 1

    def _out_of_bounds(self, services: Services) -> list[Breach]:
        found = self.coupons(services)
        breaches = []
        for crowd in self._crowds:
            expected = f"at most {crowd.most}" if crowd.hostile else f"{crowd.users}"
            holds = found[crowd.name] <= crowd.most if crowd.hostile else found[crowd.name] == crowd.users
            if not holds:
                breaches.append(Breach(RULE, f"coupons of {crowd.name}", expected, f"{found[crowd.name]}"))
        return breaches

    def _crowd_table(self) -> Table:
        found = self.coupons(self._stage.services)
        held = Counter(crowd_of(review["user_id"]) for review in self._reviews)
        table = Table(title="An attack on a guarded sale", title_justify="left")
        for column in ("who", "accounts", "claims", "stopped", "held", "coupons"):
            table.add_column(column, justify="left" if column == "who" else "right")
        for hostile, whole in ((False, "honest, in all"), (True, "attackers, in all")):
            sums: Counter[int] = Counter()
            style = "red" if hostile else None
            for crowd in (each for each in self._crowds if each.hostile == hostile):
                stopped = sum(calls for (name, _), calls in self._stopped.items() if name == crowd.name)
                counts = (crowd.users, self._sent[crowd.name], stopped, held[crowd.name], found[crowd.name])
                sums.update(dict(enumerate(counts)))
                table.add_row(crowd.says, *(f"{count:,}" for count in counts), style=style)
            table.add_row(whole, *(f"{sums[place]:,}" for place in range(5)), style=style, end_section=True)
        return table

    def _rule_table(self) -> Table:
        table = Table(title="Claims stopped, by rule or limit", title_justify="left")
        table.add_column("stopped by")
        table.add_column("attackers", justify="right")
        table.add_column("honest", justify="right")
        hostile = {crowd.name for crowd in self._crowds if crowd.hostile}
        for rule in dict.fromkeys(rule for _, rule in self._stopped):
            calls = {name: count for (name, fired), count in self._stopped.items() if fired == rule}
            attackers = sum(count for name, count in calls.items() if name in hostile)
            table.add_row(rule, f"{attackers:,}", f"{sum(calls.values()) - attackers:,}")
        return table

    def _review_table(self) -> Table:
        table = Table(title="Held for review, and decided", title_justify="left")
        table.add_column("crowd")
        table.add_column("rule")
        for state in ("held", "approved", "rejected"):
            table.add_column(state, justify="right")
        groups = Counter((crowd_of(each["user_id"]), each["rule"], each["state"]) for each in self._reviews)
        for crowd, rule in dict.fromkeys((crowd, rule) for crowd, rule, _ in groups):
            approved, rejected = groups[crowd, rule, "approved"], groups[crowd, rule, "rejected"]
            held = sum(count for (name, fired, _), count in groups.items() if (name, fired) == (crowd, rule))
            table.add_row(crowd, rule, f"{held:,}", f"{approved:,}", f"{rejected:,}")
        return table


def _entry(dimension: str, value: str) -> AdminCall:
    """Without an ``Idempotency-Key``: a front that is killed with one in hand holds it for a minute, and the same entry
    again changes nothing."""
    body = {"dimension": dimension, "value": value, "comment": "a farm of accounts"}
    return AdminCall("PUT", "/v1/risk-lists/block", body)
