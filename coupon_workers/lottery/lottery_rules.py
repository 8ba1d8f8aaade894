"""What the gate must know of a lottery, in the words of the draw script's ``meta``, and how a change reaches it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.lottery import Row, find_lottery, read_prizes
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.templates.local_day import utc_offsets

log = get_logger(__name__)

_GATE_STATUS = {
    "pending_approval": "waiting",
    "open": "open",
    "paused": "paused",
    "ending": "ended",
    "ended": "ended",
}


@dataclass(frozen=True, slots=True)
class LotteryRules:
    """A lottery as the gate sees it, at one version."""

    lottery: Row
    prizes: Sequence[Row]

    @property
    def version(self) -> int:
        """The number of its last change."""
        return int(self.lottery["version"])

    @property
    def stock(self) -> str:
        """What the database has left of each prize, as ``lua/swap_draws.lua`` reads it."""
        return ",".join(f"{prize['prize_no']}:{prize['left_quantity']}" for prize in self.prizes)

    def meta(self) -> list[str | int]:
        """Pairs of field and value for the ``meta`` hash, flat; "" stands for no limit."""
        lottery = self.lottery
        offsets = utc_offsets(lottery["timezone"], lottery["start_at"], lottery["end_at"])
        fields: dict[str, str | int] = {
            "status": _GATE_STATUS[lottery["status"]],
            "start_ms": to_ms(lottery["start_at"]),
            "end_ms": to_ms(lottery["end_at"]),
            "user_limit": _limit(lottery["per_user_limit"]),
            "daily_limit": _limit(lottery["per_user_daily_limit"]),
            "offsets": ",".join(f"{from_s}:{offset_s}" for from_s, offset_s in offsets),
            "weights": ",".join(f"{prize['prize_no']}:{prize['weight']}" for prize in self.prizes),
        }
        for prize in self.prizes:
            fields[f"prize:{prize['prize_no']}"] = f"{prize['template_id'] or ''} {prize['name']}"
        return [part for pair in fields.items() for part in pair]


def _limit(limit: int | None) -> str | int:
    return "" if limit is None else limit


def read_rules(connection: Connection, lottery_id: int) -> LotteryRules | None:
    """The rules as they were last committed; None when there is no such lottery."""
    lottery = find_lottery(connection, lottery_id)
    return None if lottery is None else LotteryRules(lottery, read_prizes(connection, lottery_id))


def sync_lottery(services: Services, lottery_id: int) -> None:
    """Bring the newest committed version to the live keys; does nothing where they are cold. Safe at any time and in
    any order: the script lets each version act once. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        rules = read_rules(connection, lottery_id)
    if rules is not None:
        keys = LotteryKeys(lottery_id)
        names = [keys.meta, keys.generation, keys.told]
        lua_script("sync_lottery")(services.redis, names, [rules.version, *rules.meta()])


def tell_gate(services: Services, lottery_id: int) -> None:
    """The same; the sweep does it if Redis is away."""
    try:
        sync_lottery(services, lottery_id)
    except StoreUnavailable as error:
        log.warning("the gate learns of a change later", lottery_id=lottery_id, error=str(error))
