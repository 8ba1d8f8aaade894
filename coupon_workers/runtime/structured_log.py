"""Structured logs: one JSON object a line, with the request, claim and template in hand bound to it."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog
from dramatiq.middleware.shutdown import Shutdown

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.unknown_setting import untold_unknown_settings

LONGEST_TEXT = 10_000
"""Characters of one value: a message of megabytes that fails is not written into the log."""

bind = structlog.contextvars.bind_contextvars
clear = structlog.contextvars.clear_contextvars


def get_logger(name: str) -> Any:
    """A logger whose lines carry ``logger=name`` and whatever is bound (``request_id``, ``claim_id``, …)."""
    return structlog.get_logger(name)


class _StandardErrorHandler(logging.StreamHandler[Any]):
    """Writes to what is standard error at that moment: a progress bar puts itself before it for a while."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, stream: Any) -> None:
        raise AttributeError("the stream is standard error")


def configure_logs(settings: Settings, *, for_good: bool = True) -> None:
    """Send all logs of this process, ours and the libraries', to stderr in the form the settings name.

    ``for_good``: loggers keep what they find at first use, which is faster; otherwise they may be configured again.
    Variables that are no settings are warned of, once in a tree of processes.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=for_good,
    )
    handler = _StandardErrorHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _tell_an_outage_in_a_line,
                structlog.processors.format_exc_info,
                _shorten,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level)
    # It tells every step of every connection, and an outage in six lines: whoever asked tells what failed.
    logging.getLogger("pika").setLevel(logging.NOTSET if settings.log_level == "DEBUG" else logging.CRITICAL)
    # Its "ready for action" comes before the processes are: ``coupon-workers up`` says when all is ready.
    logging.getLogger("dramatiq").setLevel(logging.NOTSET if settings.log_level != "INFO" else logging.WARNING)
    for sentence in untold_unknown_settings():
        get_logger(__name__).warning(sentence)


def _tell_an_outage_in_a_line(_logger: Any, _method: str, line: Any) -> Any:
    """A server that is away, or the order to end, is met everywhere, and where says nothing: no stack trace for it."""
    trace = line.get("exc_info")
    error = trace[1] if isinstance(trace, tuple) else trace
    if isinstance(error, StoreUnavailable | Shutdown):
        line["error"] = str(error) or type(error).__name__
        del line["exc_info"]
    return line


def _shorten(_logger: Any, _method: str, line: Any) -> Any:
    for name, value in line.items():
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            line[name] = f"{value[:LONGEST_TEXT]}… ({len(value)} characters)"
    return line
