"""What the environment says is taken as it is meant, or refused by name."""

from __future__ import annotations

import pytest

from coupon_workers.errors import SettingsError
from coupon_workers.runtime.settings import PREFIX, Settings, read_settings


@pytest.mark.parametrize("field", Settings.model_fields)
def test_an_empty_variable_is_the_same_as_none(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    """A compose file cannot leave out what is not set: it sets it to nothing."""
    monkeypatch.delenv(f"{PREFIX}{field.upper()}", raising=False)
    expected = read_settings()
    monkeypatch.setenv(f"{PREFIX}{field.upper()}", "")

    assert expected == read_settings()


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "BROKER_URL", "SMTP_URL"])
@pytest.mark.parametrize("address", [" {}://:s3cret@host/0", "{}://:s3cret@host/0\n"])
def test_an_address_with_spaces_around_it_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, address: str) -> None:
    """As a file of secrets gives it, with the end of its line: each library would make something else of it."""
    scheme = {"DATABASE_URL": "postgresql", "SMTP_URL": "smtp"}.get(name, "redis")
    monkeypatch.setenv(f"{PREFIX}{name}", address.format(scheme))

    with pytest.raises(SettingsError, match=f"{PREFIX}{name}: must be a URL without spaces around it") as refusal:
        read_settings()

    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("name", ["REDIS_URL", "BROKER_URL", "SMTP_URL"])
@pytest.mark.parametrize("address", ["{}://:s3cret/s3cret@host:1", "{}://host:63x", "{}://host:65536"])
def test_a_port_that_is_none_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, address: str
) -> None:
    """It is mostly a piece of a password, and has no place in a log."""
    monkeypatch.setenv(f"{PREFIX}{name}", address.format("smtp" if name == "SMTP_URL" else "redis"))

    with pytest.raises(SettingsError, match=f"{PREFIX}{name}: has no number where its port should be") as refusal:
        read_settings()

    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("address", ["postgresql://u:s3@cret:s3cret@host/d", "postgresql://host:54x/d", "postgresql:d"])
def test_an_address_of_postgresql_that_cannot_be_read_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Its driver bears more in a password than the others, and not an at sign."""
    monkeypatch.setenv(f"{PREFIX}DATABASE_URL", address)

    with pytest.raises(SettingsError, match=f"{PREFIX}DATABASE_URL: has no number where its port") as refusal:
        read_settings()

    assert "cret" not in str(refusal.value)


def test_a_password_may_hold_anything_that_is_written_as_addresses_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the refusal says."""
    monkeypatch.setenv(f"{PREFIX}REDIS_URL", "redis://:a%2Fb%3Fc%23d@host:6379/0")

    assert read_settings().redis_url is not None
