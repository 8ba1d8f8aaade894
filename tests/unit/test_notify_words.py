"""What users read: money, percents and instants as their language writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from coupon_workers.notify.event import USER_EVENTS
from coupon_workers.notify.message_text import (
    LOCALES,
    LONGEST_NAME,
    Offer,
    money_text,
    offer_text,
    one_line,
    write_text,
)


def _offer(**changed: Any) -> Offer:
    offer: dict[str, Any] = {
        "name": "Sale", "type": "amount_off", "currency": "CNY", "amount_minor": 2_000, "percent_off_bp": None,
        "max_discount_minor": None, "threshold_minor": 10_000, "timezone": "Asia/Shanghai",
        "valid_to": datetime(2026, 11, 11, 16, tzinfo=UTC),
    }  # fmt: skip
    return Offer(**offer | changed)


@pytest.mark.parametrize(
    ("amount_minor", "currency", "english", "chinese"),
    [
        (2_000, "CNY", "CN¥20.00", "¥20.00"),
        (2_000, "JPY", "¥2,000", "JP¥2,000"),
        (2_500, "KWD", "KWD2.500", "KWD2.500"),
        (1, "USD", "$0.01", "US$0.01"),
        (2**62 + 1, "EUR", "€46,116,860,184,273,879.05", "€46,116,860,184,273,879.05"),
    ],
)
def test_money_is_exact_and_has_the_currencys_decimals(
    amount_minor: int, currency: str, english: str, chinese: str
) -> None:
    """No float is exact at this size."""
    assert (english, chinese) == (
        money_text("en", amount_minor, currency),
        money_text("zh", amount_minor, currency),
    )


@pytest.mark.parametrize(
    ("changed", "english", "chinese"),
    [
        ({}, "CN¥20.00 off from CN¥100.00", "满¥100.00立减¥20.00"),
        ({"type": "cash", "threshold_minor": 0}, "CN¥20.00 off", "立减¥20.00"),
        (
            {"type": "percent_off", "amount_minor": None, "percent_off_bp": 1_550, "max_discount_minor": 5_000},
            "15.5 % off from CN¥100.00, up to CN¥50.00",
            "满¥100.00优惠15.5%，最多减¥50.00",
        ),
        ({"type": "random_amount", "amount_minor": None, "threshold_minor": 0}, "a discount", "优惠"),
    ],
)
def test_an_offer_is_told_in_a_few_words(changed: dict[str, Any], english: str, chinese: str) -> None:
    """Every type of coupon."""
    assert (english, chinese) == (offer_text("en", _offer(**changed)), offer_text("zh", _offer(**changed)))


def test_the_end_is_told_in_the_templates_time_zone() -> None:
    """A second past midnight in Shanghai, not past four in the afternoon."""
    late = _offer(valid_to=datetime(2026, 11, 11, 16, 0, 1, tzinfo=UTC))

    assert "Nov 12, 2026, 12:00:01" in write_text("en", "coupon.issued", late)[1]
    assert "2026年11月12日 00:00:01" in write_text("zh", "coupon.expiring", late)[1]


def test_an_end_at_midnight_is_the_end_of_the_day_before() -> None:
    """Nobody takes it for the end, or the noon, of the next day."""
    assert "valid until the end of Nov 11, 2026." in write_text("en", "coupon.issued", _offer())[1]
    assert "有效期至2026年11月11日24:00" in write_text("zh", "coupon.expiring", _offer())[1]


@pytest.mark.parametrize("language", LOCALES)
@pytest.mark.parametrize("event", USER_EVENTS)
def test_every_event_has_words_in_every_language(language: str, event: str) -> None:
    """On one line each, with the template's name; braces in a name are a name's."""
    subject, words = write_text(language, event, _offer(name="{offer}\r\nBcc: x"), "NO_SUCH_REASON")

    assert "{offer} Bcc: x" in subject and "{offer} Bcc: x" in words
    assert subject.isprintable() and words


@pytest.mark.parametrize("text", ["a\r\nb", "a\u2028b", "a\x00b", "a\x85 \t b", " a\x1b b "])
def test_a_name_is_brought_onto_one_line(text: str) -> None:
    """Whatever there is of line ends and of what does not print."""
    assert "a b" == one_line(text)
    assert LONGEST_NAME == len(one_line("x" * 1_000))
