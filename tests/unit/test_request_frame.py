"""Which requests have a line in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from web import request_frame
from web.request_frame import RequestFrame

Lines = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """What is told, each with its level."""
    told: Lines = []

    class Log:
        """Keeps the lines."""

        def info(self, event: str, **values: Any) -> None:
            told.append(("info", values))

        def debug(self, event: str, **values: Any) -> None:
            told.append(("debug", values))

    monkeypatch.setattr(request_frame, "log", Log())
    return told


def ask(method: str, path: str, status: str) -> None:
    """Send a request through a frame whose application answers ``status``."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response(status, [])
        return [b""]

    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "HTTP_X_REQUEST_ID": "req-1"}
    RequestFrame(application)(environ, lambda status, headers, exc_info=None: None)


@pytest.mark.parametrize("status", ["400 BAD REQUEST", "401 UNAUTHORIZED", "404 NOT FOUND", "422 X", "500 X", "503 X"])
def test_a_claim_that_goes_wrong_has_a_line(lines: Lines, status: str) -> None:
    """Its request id leads to it."""
    ask("POST", "/v1/claims", status)

    [(level, values)] = lines
    assert ("info", int(status[:3]), "req-1") == (level, values["status"], values["request_id"])


@pytest.mark.parametrize("status", ["200 OK", "202 ACCEPTED", "409 CONFLICT", "429 TOO MANY REQUESTS"])
def test_the_days_work_of_claims_has_none(lines: Lines, status: str) -> None:
    """Thousands a second: only whoever asks for DEBUG gets them."""
    ask("POST", "/v1/claims", status)

    assert [] == lines


def test_with_debug_every_claim_has_a_line(
    lines: Lines, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the level of that name."""
    # The import linter, when it runs in this process, disables every logger it finds.
    monkeypatch.setattr(logging.getLogger("web.access"), "disabled", False)
    with caplog.at_level(logging.DEBUG):
        ask("POST", "/v1/claims", "202 ACCEPTED")
        ask("POST", "/v1/claims", "503 SERVICE UNAVAILABLE")

    assert [("debug", 202), ("info", 503)] == [(level, values["status"]) for level, values in lines]


@pytest.mark.parametrize(
    ("path", "status", "level"),
    [
        ("/livez", "200 OK", "debug"),
        ("/readyz", "503 SERVICE UNAVAILABLE", "debug"),
        ("/v1/queues", "200 OK", "debug"),
        ("/v1/queues", "403 FORBIDDEN", "info"),
    ],
)
def test_probes_and_what_was_read_are_told_with_debug_only(
    lines: Lines,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    status: str,
    level: str,
) -> None:
    """They come by the thousand; what was refused has its line in any case."""
    monkeypatch.setattr(logging.getLogger("web.access"), "disabled", False)

    ask("GET", path, status)
    without_debug = [told for told, _ in lines]
    with caplog.at_level(logging.DEBUG):
        ask("GET", path, status)

    assert ([] if level == "debug" else [level]) == without_debug
    assert [*without_debug, level] == [told for told, _ in lines]
