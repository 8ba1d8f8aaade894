"""The end of a lottery: its gate is shut, what waits is settled, and what is left of its prizes goes back, once."""

from __future__ import annotations

from datetime import datetime

from redis.exceptions import RedisError
from sqlalchemy import Connection, text

from coupon_workers.campaigns.batch_control import tell_gate as tell_template_gate
from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.draw_settlement import take_turn
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.lottery import hold_lottery
from coupon_workers.lottery.lottery_rules import sync_lottery
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import settle_draws

log = get_logger(__name__)

_ENDING = text(
    "UPDATE lottery SET status = 'ending', ended_by = :operator, version = version + 1, updated_at = :now"
    " WHERE lottery_id = :lottery_id AND status IN ('pending_approval', 'open', 'paused')"
)
# In order of their numbers, as everywhere that holds several.
_HOLD_TEMPLATES = text(
    "SELECT template_id FROM coupon_template WHERE template_id IN"
    " (SELECT template_id FROM prize WHERE lottery_id = :lottery_id AND left_quantity > 0)"
    " ORDER BY template_id FOR NO KEY UPDATE"
)
_END = text(
    """
    WITH ended AS (
        UPDATE lottery SET status = 'ended', ended_at = :now, version = version + 1, updated_at = :now
         WHERE lottery_id = :lottery_id AND status = 'ending'
        RETURNING lottery_id
    ), held AS (
        SELECT p.prize_no, p.template_id, p.left_quantity
          FROM prize p JOIN ended USING (lottery_id) WHERE p.left_quantity > 0
    ), emptied AS (
        UPDATE prize p SET left_quantity = 0 FROM ended WHERE p.lottery_id = ended.lottery_id
    ), given_back AS (
        UPDATE coupon_template t SET reserved_quantity = reserved_quantity - g.units, version = version + 1,
               updated_at = :now
          FROM (SELECT template_id, sum(left_quantity) AS units FROM held WHERE template_id IS NOT NULL
                 GROUP BY template_id) AS g
         WHERE t.template_id = g.template_id
        RETURNING t.template_id
    )
    SELECT (SELECT count(*) FROM ended) AS ended, ARRAY(SELECT template_id FROM given_back) AS template_ids
    """
)


def mark_ending(connection: Connection, lottery_id: int, operator: str, now: datetime) -> bool:
    """Nobody draws from the moment on at which the gate hears of it; whether it did not end already."""
    named = {"lottery_id": lottery_id, "operator": operator, "now": now}
    return connection.execute(_ENDING, named).rowcount == 1


def close_lottery(services: Services, lottery_id: int) -> bool:
    """End a lottery that is ending, unless draws still wait: those are rung for. Whether it has ended now.

    Safe at any time, by any number. Raises ``StoreUnavailable``: without Redis nobody knows what waits.
    """
    sync_lottery(services, lottery_id)
    with transaction(services.engine) as connection:
        # Neither a settling nor a preheat meanwhile: what was accepted is in the stream or in the books.
        if not take_turn(connection, lottery_id):
            return False
        lottery = hold_lottery(connection, lottery_id)
        if lottery["status"] != "ending" or not _is_still(services, lottery_id, lottery["version"]):
            return False
        connection.execute(_HOLD_TEMPLATES, {"lottery_id": lottery_id})
        ended = connection.execute(_END, {"lottery_id": lottery_id, "now": services.clock()}).one()
    sync_lottery(services, lottery_id)
    for template_id in ended.template_ids:
        tell_template_gate(services, template_id)
    log.info("lottery ended", lottery_id=lottery_id, given_back_to=ended.template_ids)
    return bool(ended.ended)


def _is_still(services: Services, lottery_id: int, version: int) -> bool:
    """Whether nothing waits, and the gate lets nothing in: it knows of the end, or is cold."""
    keys = LotteryKeys(lottery_id)
    pipeline = services.redis.pipeline(transaction=True)
    pipeline.exists(keys.generation)
    pipeline.hget(keys.meta, "version")
    pipeline.xlen(keys.pending)
    try:
        warm, known, pending = pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    if pending:
        services.post.send(settle_draws(lottery_id))
    return not pending and (not warm or int(known or 0) >= version)
