"""What a risk policy says of claims, in a few lines of Python: the claim script must say the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coupon_workers.risk.policy import RiskPolicyBody, RiskRule


@dataclass
class Window:
    """A counter: of a window, and of the one before."""

    number: int = 0
    count: int = 0
    before: int = 0


@dataclass
class RiskModel:
    """``listed`` and ``scores`` never expire here."""

    policy: RiskPolicyBody
    worth: int
    listed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    scores: Mapping[str, int] = field(default_factory=dict)
    windows: dict[tuple[str, str], Window] = field(default_factory=dict)
    seen: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def weigh(self, claim: dict[str, str], now_ms: int) -> tuple[str, str, str]:
        """The verdict, its rule ("" where there is none), and all that fired."""
        words = [self.listed.get((dimension, claim[dimension])) for dimension in ("user", "device", "ip", "address")]
        if "block" in words:
            return "reject", "block_list", "reject block_list"
        if "allow" in words:
            return "allow", "allow_list", "allow allow_list"
        verdict, by, fired, counted = "allow", "", [], []
        for rule in self.policy.rules:
            name, said, fires = self._fires(rule, claim, now_ms)
            if rule.measure != "score" and claim[rule.dimension]:
                counted.append(rule)
            if not fires:
                continue
            fired.append(f"{'~' if rule.shadow else ''}{said} {name}")
            if not rule.shadow and said == "reject":
                if self.policy.count_refused and rule.measure == "claims":
                    self._count(rule, claim, now_ms)
                return "reject", name, ",".join(fired)
            if not rule.shadow and said == "review" and verdict == "allow":
                verdict, by = "review", name
        for rule in counted:
            self._count(rule, claim, now_ms)
        return verdict, by, ",".join(fired)

    def _fires(self, rule: RiskRule, claim: dict[str, str], now_ms: int) -> tuple[str, str, bool]:
        if rule.measure == "score":
            score = self.scores.get(claim["user"])
            if score is None:
                return "missing_score", self.policy.missing_score, self.policy.missing_score != "allow"
            return rule.name, rule.verdict, score > rule.threshold
        if not claim[rule.dimension]:
            return rule.name, rule.verdict, False
        if rule.measure == "distinct_users":
            users = {*self._users(rule, claim, now_ms), claim["user"]}
            return rule.name, rule.verdict, len(users) > rule.threshold
        window, window_ms = self._window(rule, claim, now_ms), (rule.window_s or 0) * 1000
        in_sight = window.before * (window_ms - now_ms % window_ms) // window_ms
        return rule.name, rule.verdict, window.count + in_sight + self._adds(rule) > rule.threshold

    def _adds(self, rule: RiskRule) -> int:
        return 1 if rule.measure == "claims" else self.worth

    def _users(self, rule: RiskRule, claim: dict[str, Any], now_ms: int) -> set[str]:
        seen = self.seen.get((rule.name, claim[rule.dimension]), {})
        return {user for user, at_ms in seen.items() if at_ms > now_ms - (rule.window_s or 0) * 1000}

    def _window(self, rule: RiskRule, claim: dict[str, str], now_ms: int) -> Window:
        number = now_ms // ((rule.window_s or 0) * 1000)
        kept = self.windows.get((rule.name, claim[rule.dimension]), Window())
        if kept.number == number:
            return kept
        return Window(number, 0, kept.count if kept.number == number - 1 else 0)

    def _count(self, rule: RiskRule, claim: dict[str, str], now_ms: int) -> None:
        key = (rule.name, claim[rule.dimension])
        if rule.measure == "distinct_users":
            self.seen.setdefault(key, {})[claim["user"]] = now_ms
            return
        window = self._window(rule, claim, now_ms)
        window.count += self._adds(rule)
        self.windows[key] = window
