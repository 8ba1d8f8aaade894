"""Orders in small: what locks, payments, returns and events must do to coupons, in plain Python, one call at a time.

The same calls are given to this and to the real service (``tests/model``); afterwards both must hold the same.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

from tests.support.order_states import UNMET, Answer, Call, Coupon, Event, Lines, Order, RefusedError
from tests.support.order_sums import Cart, Held, Shares, give_back, take_off, total

CLOCKS_APART = timedelta(minutes=5)
EVENT_WAITS = timedelta(hours=24)


@dataclass
class OrderModel:
    """All that the service remembers, for all users."""

    now: datetime
    coupons: dict[int, Coupon] = field(default_factory=dict)
    orders: dict[tuple[str, str], Order] = field(default_factory=dict)
    refunds: dict[tuple[str, str], tuple[Any, Answer]] = field(default_factory=dict)
    events: dict[tuple[str, str], Event] = field(default_factory=dict)
    expense: int = 0

    def answer(self, call: Call) -> Answer:
        """What the call is answered; one that is refused changes nothing."""
        before = copy.deepcopy(vars(self))
        try:
            answer: Answer = getattr(self, call.name)(**call.arguments)
        except RefusedError as refused:
            vars(self).update(before)
            return "refused", refused.code
        return answer

    def view(self) -> dict[str, Any]:
        """What the database must hold."""
        return {
            "coupons": {c.number: (c.owner, c.status, c.order, c.valid_to) for c in self.coupons.values()},
            "orders": {
                key: (o.status, total(o.shares), o.payable, o.refunded, o.returned, o.payment)
                for key, o in self.orders.items()
            },
            "uses": {
                (*key, number): (o.status, sum(lines.values()), sum(lines.values()) - sum(o.left[number].values()))
                for key, o in self.orders.items()
                for number, lines in o.shares.items()
            },
            "events": {key: (event.state, event.code) for key, event in self.events.items()},
            "expense": self.expense,
        }

    def of_user(self, user: str) -> list[Coupon]:
        """The user's coupons, free ones first."""
        own = [coupon for coupon in self.coupons.values() if coupon.owner == user]
        return sorted(own, key=lambda coupon: (coupon.status != "unused", coupon.number))

    # Calls

    def quote(self, user: str, cart: Cart, coupons: tuple[int, ...]) -> Answer:
        """What these coupons would take off."""
        chosen = [self._own(user, number) for number in coupons]
        shares, refused = self._apply(cart, [coupon for coupon in chosen if coupon.status == "unused"])
        refused |= {coupon.number: _unfree(coupon.status) for coupon in chosen if coupon.status != "unused"}
        return "quote", shares, refused

    def best(self, user: str, cart: Cart) -> int:
        """The most that coupons of the wallet can take off together."""
        usable = [c for c in self.coupons.values() if (c.owner, c.status) == (user, "unused")]
        usable = [c for c in usable if not self._apply(cart, [c])[1]]
        most = 0
        for size in range(1, len(usable) + 1):
            for some in combinations(usable, size):
                shares, refused = self._apply(cart, list(some))
                most = max(most, 0 if refused else total(shares))
        return most

    def lock(self, user: str, order: str, cart: Cart, coupons: tuple[int, ...], ttl: int) -> Answer:
        """Hold coupons, all or none."""
        known = self.orders.get((user, order))
        if known and known.status == "redeemed":
            raise RefusedError("ALREADY_REDEEMED")
        if known and known.status == "locked" and known.until and self.now < known.until:
            if (known.cart, known.coupons) != (cart, frozenset(coupons)):
                raise RefusedError("LOCKED_OTHERWISE")
            return _order_answer(known)
        if known and known.status == "locked":
            self._let_go(known)
        elif known and (known.cart, known.coupons) == (cart, frozenset(coupons)) and self._closed_since(user, order):
            return _order_answer(known)
        placed = self._place(user, order, cart, coupons, "locked")
        placed.locked_at, placed.until = self.now, self.now + timedelta(seconds=ttl)
        self._settle_waiting(user, order)
        return _order_answer(self.orders[user, order])

    def pay(self, user: str, order: str, payment: str, paid_at: datetime | None) -> Answer:
        """Redeem what the order holds."""
        self._redeem(user, order, payment, paid_at, None)
        self._settle_waiting(user, order)
        return _order_answer(self.orders[user, order])

    def pay_directly(
        self, user: str, order: str, payment: str, paid_at: datetime | None, cart: Cart, coupons: tuple[int, ...]
    ) -> Answer:
        """Redeem with the order in hand."""
        self._redeem(user, order, payment, paid_at, (cart, coupons))
        self._settle_waiting(user, order)
        return _order_answer(self.orders[user, order])

    def release(self, user: str, order: str) -> Answer:
        """Let an unpaid order's coupons go."""
        known = self._order(user, order)
        if known.status == "redeemed":
            raise RefusedError("ALREADY_REDEEMED")
        if known.status == "locked":
            self._let_go(known)
        return _order_answer(known)

    def unlock(self, user: str, coupon: int, force: bool) -> Answer:
        """An operator has the order that holds a coupon let go; by force, while it may still be paid."""
        own = self._own(user, coupon)
        if own.status == "unused":
            return ("unlocked",)
        if own.status != "locked" or own.order is None:
            raise RefusedError("COUPON_NOT_AVAILABLE")
        order = self.orders[user, own.order]
        assert order.locked_at and order.until
        said = [event.said for event in self.events.values() if event.said["occurred_at"] >= order.locked_at]
        heard = [
            (each["occurred_at"], each["kind"]) for each in said if (each["user"], each["order"]) == (user, own.order)
        ]
        if not force and self.now < order.until and max(heard, default=("", ""))[1] != "closed":
            raise RefusedError("LOCK_STANDS")
        self._let_go(order)
        return ("unlocked",)

    def refund(self, user: str, order: str, refund: str, lines: Lines | None) -> Answer:
        """Return pieces, or everything."""
        known = self._order(user, order)
        if (user, refund) in self.refunds:
            asked, answer = self.refunds[user, refund]
            if asked != (order, lines):
                raise RefusedError("INVALID")
            return answer
        if known.status != "redeemed":
            raise RefusedError("NOT_REDEEMED")
        back = self._pieces(known, lines)
        terms = {number: self.coupons[number].terms for number in known.shares}
        amount, going = give_back(known.cart, known.kept, known.left, back, terms)
        known.kept = {line: pieces - back.get(line, 0) for line, pieces in known.kept.items()}
        known.left = {n: {line: d - going[n][line] for line, d in parts.items()} for n, parts in known.left.items()}
        known.refunded += amount
        self.expense -= total(going)
        for number in known.shares:
            self._come_back(self.coupons[number], known.returned)
        ends = {number: (self.coupons[number].status, sum(going[number].values())) for number in known.shares}
        self.refunds[user, refund] = ((order, lines), ("refund", amount, total(going), ends))
        return self.refunds[user, refund][1]

    def tell(self, **said: Any) -> Answer:
        """Take an event of the feed."""
        if said["occurred_at"] > self.now + CLOCKS_APART:
            raise RefusedError("INVALID")
        key = said["user"], said["event"]
        if key not in self.events:
            self.events[key] = Event(said, self.now, len(self.events))
            self._settle(key)
            if (said["kind"], self.events[key].state) == ("paid", "applied"):
                self._settle_waiting(said["user"], said["order"])
        if self.events[key].said != said:
            raise RefusedError("INVALID")
        return "event", self.events[key].state, self.events[key].code

    def transfer(self, user: str, coupon: int, to: str, becomes: int) -> Answer:
        """Give a coupon away."""
        if user == to:
            raise RefusedError("INVALID")
        given = self._own(user, coupon)
        if given.terms.transferable and given.status == "unused" and self.now < given.valid_to:
            given.status, given.becomes = "transferred", (to, becomes)
            self.coupons[becomes] = Coupon(becomes, to, given.terms, given.valid_from, given.valid_to)
        if given.becomes and given.becomes[0] == to:
            return "transfer", given.becomes[1]
        if not given.terms.transferable:
            raise RefusedError("NOT_TRANSFERABLE")
        raise RefusedError("EXPIRED" if given.status in ("unused", "expired") else "COUPON_NOT_AVAILABLE")

    def sweep(self) -> Answer:
        """Let go what is overdue."""
        overdue = [o for o in self.orders.values() if o.status == "locked" and o.until and o.until <= self.now]
        for order in overdue:
            self._let_go(order)
        return "swept", len(overdue)

    def expire(self) -> Answer:
        """End what has run out."""
        ended = [c for c in self.coupons.values() if c.status == "unused" and c.valid_to <= self.now]
        for coupon in ended:
            coupon.status = "expired"
        return "expired", len(ended)

    def settle_events(self) -> Answer:
        """Settle events whose order is there, refuse those that waited too long."""
        for (user, number), order in list(self.orders.items()):
            if any(
                self.events[key].said["kind"] != "refunded" or order.status == "redeemed"
                for key in self._waiting(user, number)
            ):
                self._settle_waiting(user, number)
        for event in self.events.values():
            if event.state == "waiting" and event.tried_at <= self.now - EVENT_WAITS:
                event.state = "refused"
        return ("settled",)

    # What they are made of

    def _own(self, user: str, number: int) -> Coupon:
        coupon = self.coupons.get(number)
        if coupon is None or coupon.owner != user:
            raise RefusedError("COUPON_NOT_FOUND")
        return coupon

    def _order(self, user: str, order: str) -> Order:
        if (user, order) not in self.orders:
            raise RefusedError("ORDER_NOT_FOUND")
        return self.orders[user, order]

    def _apply(self, cart: Cart, coupons: list[Coupon]) -> tuple[Shares, dict[int, str]]:
        early = {coupon.number: code for coupon in coupons if (code := self._cannot(coupon))}
        held = [
            Held(c.number, c.terms, (c.terms.priority, c.terms.name, -(c.terms.amount or 0), c.valid_to, c.number))
            for c in coupons
            if c.number not in early
        ]
        shares, refused = take_off(cart, held)
        return shares, early | refused

    def _cannot(self, coupon: Coupon) -> str | None:
        if coupon.terms.currency != "CNY":
            return "CURRENCY_MISMATCH"
        if self.now < coupon.valid_from:
            return "NOT_YET_VALID"
        return "EXPIRED" if self.now >= coupon.valid_to else None

    def _place(self, user: str, order: str, cart: Cart, coupons: tuple[int, ...], status: str) -> Order:
        chosen = [self._own(user, number) for number in coupons]
        for coupon in chosen:
            if coupon.status != "unused":
                raise RefusedError(_unfree(coupon.status))
        shares, refused = self._apply(cart, chosen)
        for number in coupons:
            if number in refused:
                raise RefusedError(refused[number])
        kept = {line.line: line.pieces for line in cart}
        placed = Order(order, cart, frozenset(coupons), shares, copy.deepcopy(shares), kept, status)
        self.orders[user, order] = placed
        for coupon in chosen:
            coupon.status, coupon.order = status, order
        return placed

    def _redeem(
        self, user: str, order: str, payment: str, paid_at: datetime | None, whole: tuple[Cart, tuple[int, ...]] | None
    ) -> None:
        if paid_at and paid_at > self.now + CLOCKS_APART:
            raise RefusedError("INVALID")
        paid_at = paid_at or self.now
        known = self.orders.get((user, order))
        if known is None and whole is None:
            raise RefusedError("ORDER_NOT_FOUND")
        if known is None and whole is not None:
            known = self._place(user, order, *whole, "redeemed")
            self._paid(known, payment, paid_at)
            return
        assert known is not None
        if known.status == "redeemed" and known.payment != payment:
            raise RefusedError("ALREADY_REDEEMED")
        if whole is not None and (known.cart, known.coupons) != (whole[0], frozenset(whole[1])):
            raise RefusedError("ORDER_DIFFERS")
        if known.status == "redeemed":
            return
        self._check_still_there(known, paid_at)
        for coupon in map(self.coupons.__getitem__, known.shares):
            coupon.status, coupon.order = "redeemed", order
        self._paid(known, payment, paid_at)

    def _check_still_there(self, order: Order, paid_at: datetime) -> None:
        """A payment in time has what the lock held, a later one only what holds now."""
        assert order.locked_at and order.until
        if order.status == "locked" and self.now < order.until:
            return
        in_time = order.locked_at <= paid_at < min(order.until, order.let_go_at or order.until)
        for coupon in map(self.coupons.__getitem__, order.shares):
            there = coupon.status == "unused" or (coupon.status, coupon.order) == ("locked", order.number)
            if not there or (not in_time and self.now >= coupon.valid_to):
                raise RefusedError("LOCK_EXPIRED")

    def _paid(self, order: Order, payment: str, paid_at: datetime) -> None:
        order.status, order.payment, order.paid_at = "redeemed", payment, paid_at
        self.expense += total(order.shares)

    def _let_go(self, order: Order) -> None:
        order.status, order.let_go_at = "released", self.now
        for number in order.shares:
            self.coupons[number].status, self.coupons[number].order = "unused", None

    def _pieces(self, order: Order, lines: Lines | None) -> dict[str, int]:
        asked = dict(lines or ())
        if lines is not None and (len(asked) < len(lines) or not asked.keys() <= order.kept.keys()):
            raise RefusedError("INVALID")
        if order.returned:
            raise RefusedError("NOTHING_LEFT")
        if lines is None:
            return {line: pieces for line, pieces in order.kept.items() if pieces}
        if any(pieces > order.kept[line] for line, pieces in asked.items()):
            raise RefusedError("INVALID")
        return asked

    def _come_back(self, coupon: Coupon, everything: bool) -> None:
        if not everything or not coupon.terms.comes_back:
            return
        coupon.status, coupon.order = "unused", None
        if self.now >= coupon.valid_to:
            if coupon.terms.grace_days:
                coupon.valid_to = self.now + timedelta(days=coupon.terms.grace_days)
            else:
                coupon.status = "expired"

    def _settle_waiting(self, user: str, order: str) -> None:
        """One may wait for another that occurred after it: so until nothing more is settled."""
        waiting = self._waiting(user, order)
        for key in waiting:
            self._settle(key)
        if len(self._waiting(user, order)) < len(waiting):
            self._settle_waiting(user, order)

    def _waiting(self, user: str, order: str) -> list[tuple[str, str]]:
        waiting = [
            (event.said["occurred_at"], event.arrival, key)
            for key, event in self.events.items()
            if event.state == "waiting" and (event.said["user"], event.said["order"]) == (user, order)
        ]
        return [key for _, _, key in sorted(waiting)]

    def _settle(self, key: tuple[str, str]) -> None:
        self.events[key].tried_at = self.now
        before = copy.deepcopy(vars(self))
        try:
            outcome = self._act(**self.events[key].said)
        except RefusedError as refused:
            vars(self).update(before)
            outcome = "refused", refused.code
        self.events[key].state, self.events[key].code = outcome

    def _act(
        self, user: str, event: str, order: str, kind: str, occurred_at: datetime, more: dict[str, Any]
    ) -> tuple[str, str | None]:
        known = self.orders.get((user, order))
        if known is None:
            return "waiting", UNMET
        if kind == "paid":
            if known.status != "redeemed" and self._closed_since(user, order, occurred_at):
                return "superseded", "CLOSED"
            self._redeem(user, order, more.get("payment") or known.payment or event, occurred_at, None)
        if kind == "closed" and known.status != "redeemed":
            self.release(user, order)
        elif kind == "closed":
            assert known.paid_at
            if occurred_at < known.paid_at:
                return "superseded", "PAID"
            if not known.returned:
                self.refund(user, order, event, None)
        if kind == "refunded":
            if known.status != "redeemed":
                return "waiting", UNMET
            self.refund(user, order, more.get("refund") or event, more.get("lines"))
        return "applied", None

    def _closed_since(self, user: str, order: str, instant: datetime | None = None) -> bool:
        return any(
            (e.said["user"], e.said["order"], e.said["kind"], e.state) == (user, order, "closed", "applied")
            and (instant is None or e.said["occurred_at"] >= instant)
            for e in self.events.values()
        )


def _unfree(status: str) -> str:
    return {"locked": "LOCKED_BY_ORDER", "expired": "EXPIRED"}.get(status, "COUPON_NOT_AVAILABLE")


def _order_answer(order: Order) -> Answer:
    shares = {number: dict(lines) for number, lines in order.shares.items()}
    return "order", order.status, order.payable, shares, order.until, order.payment
