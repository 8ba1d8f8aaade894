"""`coupon-workers env` shows every setting and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from coupon_workers.cli.env import env, masked
from coupon_workers.embedded.folder_lock import FolderLock
from coupon_workers.embedded.servers_file import write_servers_file
from coupon_workers.runtime.settings import Settings


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://shop:se:cr@t@db.example/coupon", "postgresql://shop:***@db.example/coupon"),
        ("redis://:secret@cache:6379/0", "redis://:***@cache:6379/0"),
        ("redis://cache:6379/0", "redis://cache:6379/0"),
        ("unix:///run/a.sock?db=0&password=secret", "unix:///run/a.sock?db=0&password=***"),
        (
            "postgresql+psycopg2://postgres@/coupon?host=/run/pg",
            "postgresql+psycopg2://postgres@/coupon?host=/run/pg",
        ),
        ("pepper", "***"),
    ],
)
def test_passwords_are_masked(url: str, expected: str) -> None:
    """The rest of an address stays readable; a secret that is no address disappears."""
    assert expected == masked(url)


def test_every_setting_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`COUPON_X=value`, empty when unset; an address that is unset belongs to an embedded server."""
    monkeypatch.setenv("COUPON_HTTP_PORT", "8123")
    monkeypatch.setenv("COUPON_CODE_PEPPER", "grains-of-white-pepper")
    monkeypatch.setenv("COUPON_CRASH_AT", "settle.after_commit")
    monkeypatch.delenv("COUPON_DATABASE_URL", raising=False)
    monkeypatch.delenv("COUPON_SMTP_URL", raising=False)
    monkeypatch.setenv("COUPON_DATA_DIR", str(tmp_path))

    lines = CliRunner().invoke(env).output.splitlines()

    assert len(Settings.model_fields) == len(lines)
    assert {"COUPON_HTTP_PORT=8123", "COUPON_CODE_PEPPER=***", "COUPON_DATABASE_URL=(embedded)"} <= set(lines)
    assert "COUPON_SMTP_URL=" in lines  # `up` runs no mail server


def test_what_only_fault_tests_set_is_not_shown_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else needs to know of it."""
    monkeypatch.delenv("COUPON_CRASH_AT", raising=False)

    assert "COUPON_CRASH_AT" not in CliRunner().invoke(env).output


def test_the_addresses_of_a_running_up_are_shown_masked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are what every command uses."""
    running = {"COUPON_REDIS_URL": "redis://:secret@127.0.0.1:6379/0"}
    for name in ("COUPON_DATABASE_URL", "COUPON_REDIS_URL", "COUPON_BROKER_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COUPON_DATA_DIR", str(tmp_path))
    lock = FolderLock(tmp_path)
    lock.acquire()

    try:
        write_servers_file(tmp_path, running, {})
        lines = CliRunner().invoke(env).output.splitlines()
    finally:
        lock.release()

    assert {"COUPON_REDIS_URL=redis://:***@127.0.0.1:6379/0", "COUPON_BROKER_URL=(embedded)"} <= set(lines)


def test_the_addresses_of_nothing_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No `up` runs in that folder: the shell must not go on with empty variables."""
    monkeypatch.setenv("COUPON_DATA_DIR", str(tmp_path))

    result = CliRunner().invoke(env, ["--urls"])

    assert result.exit_code == 1
    assert f"no `coupon-workers up` runs with the data folder {tmp_path}" in result.output
