"""How far the telling is behind."""

from __future__ import annotations

from coupon_workers.notify.gauge import Lag, read_lag
from coupon_workers.runtime.services import Services
from tests.support.notify_bureau import Bureau


def test_the_lag_tells_of_events_and_of_deliveries(services: Services) -> None:
    """Nothing happened: all is nought. Then what waits, what was given up and who cannot be reached."""
    bureau = Bureau(services)
    assert Lag(0, 0, 0, 0, 0) == read_lag(bureau.services)
    dead = bureau.webhook("http://127.0.0.1:1/")
    for coupon in (1, 2):
        bureau.tell(coupon)
    bureau.run("UPDATE outbox SET created_at = created_at - interval '5 seconds'")
    waiting = read_lag(bureau.services)
    bureau.relay()
    bureau.deliver(dead)
    bureau.run("UPDATE delivery SET state = 'dead', finished_at = now() WHERE coupon_id = 2")

    lag = read_lag(bureau.services)

    assert (2, True) == (waiting.events, 5 <= waiting.age_s < 60)
    assert Lag(0, 0, 1, 1, 1) == lag
