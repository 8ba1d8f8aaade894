"""The schedule of back-off, the pauses of a target, and whose turn it is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from coupon_workers.errors import SettingsError
from coupon_workers.notify.backoff import WAITS, pause_after, wait_after
from coupon_workers.notify.sms_channel import LoggedSms, load_gateway
from coupon_workers.notify.turn import Turns
from coupon_workers.runtime.settings import read_settings


def test_the_waits_are_those_of_standard_webhooks_with_a_little_more() -> None:
    """Ten attempts: the first at once, and nine after these."""
    minutes = [5 / 60, 5, 30, 120, 300, 600, 840, 1_200, 1_440]

    assert [timedelta(minutes=wait) for wait in minutes] == list(WAITS)
    for step, wait in enumerate(WAITS, start=1):
        jittered = wait_after(step)
        assert jittered is not None and wait <= jittered <= wait * 1.1
    assert None is wait_after(len(WAITS) + 1)


def test_a_pause_grows_to_a_minute() -> None:
    """And no further, however long the target is away."""
    assert [2, 4, 8, 16, 32, 60, 60, 60] == [pause_after(number).total_seconds() for number in [*range(1, 8), 10**6]]


def test_a_target_has_one_turn_at_a_time_and_leaves_places_to_others() -> None:
    """Nobody waits; a place is free again when the turn is over, however it ended."""
    turns = Turns(2)

    with turns.take("a") as first, turns.take("a") as again, turns.take("b") as second, turns.take("c") as third:
        assert (True, False, True, False) == (first, again, second, third)
    with pytest.raises(ZeroDivisionError), turns.take("a"):
        1 / 0

    with turns.take("a") as once_more, turns.take("c") as other:
        assert (True, True) == (once_more, other)


def test_a_shops_own_gateway_is_found_by_its_name() -> None:
    """The example stands where a shop's goes; a name that leads nowhere is an error."""
    assert isinstance(load_gateway("coupon_workers.notify.sms_channel:LoggedSms"), LoggedSms)
    with pytest.raises(ImportError):
        load_gateway("no_such_shop.sms:Gateway")
    with pytest.raises(AttributeError):
        load_gateway("coupon_workers.notify.sms_channel:Missing")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MESSAGE_CHANNELS", "log,pigeon"),
        ("MESSAGE_CHANNELS", "smtp"),
        ("MESSAGE_LANGUAGE", "fr"),
        ("SMTP_URL", "http://mail.example"),
        ("MAIL_FROM", "Shop <shop@example.com>"),
        ("MAIL_FROM", "shop@example.com\r\nBcc: eve@evil.example"),
        ("SMS_GATEWAY", "os.system"),
        ("WEBHOOK_PRIVATE", "perhaps"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    """Named in the error."""
    monkeypatch.setenv(f"COUPON_{variable}", value)

    with pytest.raises(SettingsError, match=f"COUPON_{variable}"):
        read_settings()


def test_channels_are_read_from_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, in their order; nothing is none."""
    monkeypatch.setenv("COUPON_MESSAGE_CHANNELS", " log, smtp,,log ")
    monkeypatch.setenv("COUPON_SMTP_URL", "smtp://mail.example:25")
    monkeypatch.setenv("COUPON_MAIL_FROM", "shop@example.com")

    assert ("log", "smtp") == read_settings().channels
    monkeypatch.setenv("COUPON_MESSAGE_CHANNELS", "")
    assert () == read_settings().channels
