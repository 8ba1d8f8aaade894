"""The relay: events of the outbox become deliveries, one for each target that is to hear of them.

Only ``delivered_at`` says what has been passed on, never a mark of the highest number: a number is given before the
commit, so that a smaller one may appear after a larger one. Events of one coupon are written under its row's lock, and
their numbers are in order.
"""

from __future__ import annotations

from time import monotonic

from sqlalchemy import Connection, text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.notify.event import USER_EVENTS
from coupon_workers.notify.target import due_targets
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import deliver_messages

log = get_logger(__name__)

TURN_S = 5.0
"""A turn ends after this, and the next run of the job goes on: a worker's threads are for others too."""

RING_S = 1.0
"""While there is much to pass on, deliveries are woken as often as this."""

CHUNK = 2_000
"""Events in one transaction: some tens of milliseconds, and memory for them alone."""

CLOCKS_DIFFER_S = 10
"""An event of so long before the webhook may be told to it: rather that than one that is lost by two clocks."""

_LOCK = 7_210_934_557_121
"""The advisory lock of the one relay: a number of no meaning, taken by nobody else."""

_ROUTE = text(
    """
    WITH taken AS MATERIALIZED (
        SELECT * FROM outbox WHERE delivered_at IS NULL ORDER BY outbox_id LIMIT :chunk
    ), target AS (
        SELECT o.outbox_id, 'webhook:' || w.webhook_id AS target, w.webhook_id
          FROM taken o JOIN webhook w
            ON w.disabled_at IS NULL AND (w.events = '{}' OR o.event = ANY (w.events))
           AND w.created_at <= o.created_at + :clocks_differ_s * interval '1 second'
        UNION ALL
        SELECT o.outbox_id, channel, NULL
          FROM taken o JOIN coupon_template t ON t.template_id = o.template_id AND t.notify
         CROSS JOIN unnest(CAST(:channels AS text[])) AS channel
         WHERE o.event = ANY (CAST(:user_events AS text[]))
    ), routed AS (
        INSERT INTO delivery (target, webhook_id, outbox_id, event, user_id, template_id, coupon_id, payload,
                              next_attempt_at, occurred_at, created_at)
        SELECT target, webhook_id, o.outbox_id, event, user_id, template_id, coupon_id,
               CASE WHEN event LIKE 'finding.%' THEN '{}'
                    ELSE jsonb_build_object('template_id', CAST(template_id AS text)) END
               || CASE WHEN event = 'claim.rejected'
                       THEN jsonb_build_object('user_id', user_id, 'claim_id', CAST(coupon_id AS text),
                                               'status', 'rejected')
                       WHEN event LIKE 'batch.%' OR event LIKE 'finding.%' THEN '{}'
                       ELSE jsonb_build_object('user_id', user_id, 'coupon_no', CAST(coupon_id AS text)) END
               || CASE WHEN event = 'coupon.issued' THEN '{"status": "unused"}' ELSE '{}' END :: jsonb
               || coalesce(detail, '{}'),
               :now, o.created_at, :now
          FROM target JOIN taken o USING (outbox_id) ORDER BY o.outbox_id
        ON CONFLICT ON CONSTRAINT uq_delivery_routed DO NOTHING
    )
    UPDATE outbox SET delivered_at = :now FROM taken WHERE outbox.outbox_id = taken.outbox_id
""".replace(":: jsonb", "\\:\\:jsonb")
)


def relay_outbox(services: Services, *, turn_s: float = TURN_S, chunk: int = CHUNK) -> int:
    """Pass on what is undelivered, in chunks, until nothing is left or the turn is over; how many events.

    One relay works at a time: another returns at once. It ends by sending the messages that wake deliveries, those that
    are due again too. Raises ``StoreUnavailable``; the chunks before then are passed on.
    """
    ends_s = monotonic() + turn_s
    rings_s = monotonic() + RING_S
    passed_on = 0
    while True:
        with transaction(services.engine) as connection:
            if not connection.scalar(text("SELECT pg_try_advisory_xact_lock(:lock)"), {"lock": _LOCK}):
                return passed_on
            count = _route(connection, services, chunk)
            crash_point("relay.before_commit")
        passed_on += count
        over = count < chunk or monotonic() >= ends_s
        if over or monotonic() >= rings_s:
            wake_deliveries(services)
            rings_s = monotonic() + RING_S
        if over:
            return passed_on


def wake_deliveries(services: Services) -> None:
    """Send a message for each target that has something due. Raises ``StoreUnavailable`` of PostgreSQL."""
    for target in due_targets(services):
        try:
            services.post.send(deliver_messages(target))
        except StoreUnavailable as error:
            log.warning("delivery not woken, the next run of the job does", target=target, error=str(error))


def _route(connection: Connection, services: Services, chunk: int) -> int:
    return connection.execute(
        _ROUTE,
        {
            "chunk": chunk,
            "now": services.clock(),
            "channels": list(services.settings.channels),
            "user_events": list(USER_EVENTS),
            "clocks_differ_s": CLOCKS_DIFFER_S,
        },
    ).rowcount
