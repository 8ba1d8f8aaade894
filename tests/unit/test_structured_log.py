"""What the logs of a process say, and what they leave out."""

from __future__ import annotations

import logging

import pytest

from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.structured_log import configure_logs


@pytest.mark.parametrize(("log_level", "lines"), [("INFO", 1), ("DEBUG", 3)])
def test_the_steps_of_a_connection_to_rabbitmq_are_told_at_debug_only(
    capsys: pytest.CaptureFixture[str], log_level: str, lines: int
) -> None:
    """A look at the metrics makes a dozen of them, an outage six a try; what failed is told by whoever asked."""
    configure_logs(Settings(log_level=log_level), for_good=False)

    logging.getLogger("pika.adapters.blocking_connection").info("Created channel=1")
    logging.getLogger("pika.adapters.utils").error("AMQP connection workflow failed")
    logging.getLogger("web").info("ours")

    assert lines == len(capsys.readouterr().err.splitlines())


@pytest.mark.parametrize(("log_level", "lines"), [("DEBUG", 2), ("INFO", 1), ("WARNING", 1), ("ERROR", 0)])
def test_that_a_worker_process_has_started_is_told_at_debug_only(
    capsys: pytest.CaptureFixture[str], log_level: str, lines: int
) -> None:
    """It would read as if all were ready; what a worker warns of is told."""
    configure_logs(Settings(log_level=log_level), for_good=False)

    logging.getLogger("dramatiq.WorkerProcess(0)").info("Worker process is ready for action.")
    logging.getLogger("dramatiq.WorkerProcess(0)").warning("Killing worker process...")

    assert lines == len(capsys.readouterr().err.splitlines())
