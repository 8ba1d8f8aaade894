"""``python -m schedules``: one of any number of schedulers; the leader among them sends what is due."""

from __future__ import annotations

import signal
from types import FrameType

from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.settings import settings
from coupon_workers.runtime.structured_log import configure_logs, get_logger
from coupon_workers.scheduling.scheduler import Scheduler
from schedules.table import TABLE
from schedules.ticker import Ticker

_log = get_logger(__name__)


def main() -> None:
    """Run until SIGTERM or SIGINT; the lease is then let go at once."""
    configure_logs(settings())
    services = make_services(settings())
    scheduler = Scheduler(TABLE, services.engine, services.post)
    ticker = Ticker(scheduler.tick)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        ticker.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    _log.info("scheduler_started", jobs=[job.name for job in TABLE])
    ticker.run()
    scheduler.stop()
    _log.info("scheduler_stopped")


if __name__ == "__main__":
    main()
