"""`coupon-workers env` shows every setting and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from coupon_workers.cli.env import env, masked
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


def test_every_setting_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """`COUPON_X=value`, empty when unset."""
    monkeypatch.setenv("COUPON_HTTP_PORT", "8123")
    monkeypatch.setenv("COUPON_CODE_PEPPER", "grains")
    monkeypatch.delenv("COUPON_DATABASE_URL", raising=False)

    lines = CliRunner().invoke(env).output.splitlines()

    assert len(Settings.model_fields) == len(lines)
    assert {"COUPON_HTTP_PORT=8123", "COUPON_CODE_PEPPER=***", "COUPON_DATABASE_URL="} <= set(lines)


def test_a_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a traceback."""
    monkeypatch.setenv("COUPON_HTTP_PORT", "many")

    result = CliRunner().invoke(env)

    assert result.exit_code == 1
    assert "COUPON_HTTP_PORT" in result.output


def test_the_addresses_of_nothing_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No `up` runs in that folder: the shell must not go on with empty variables."""
    monkeypatch.setenv("COUPON_DATA_DIR", str(tmp_path))

    result = CliRunner().invoke(env, ["--urls"])

    assert result.exit_code == 1
    assert f"no `coupon-workers up` runs with the data folder {tmp_path}" in result.output
