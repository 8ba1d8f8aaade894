"""The words of messages to users, in English and Chinese. Money is shown by Babel, from integers, without floats."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_datetime
from babel.numbers import format_currency, format_decimal

from coupon_workers.templates.currency import EXPONENTS
from coupon_workers.templates.validity import day_before_midnight

LOCALES = {"en": "en", "zh": "zh_Hans_CN"}

LONGEST_NAME = 120
"""Characters of a template's name in a message."""

_WORDS = {
    ("en", "coupon.issued"): (
        "You have a new coupon: {name}",
        "Your coupon “{name}” is in your wallet: {offer}. It is valid until {until}.",
    ),
    ("en", "claim.rejected"): (
        "No coupon this time: {name}",
        "We are sorry: your claim of “{name}” could not be met. {reason}",
    ),
    ("en", "coupon.expiring"): (
        "Your coupon ends soon: {name}",
        "Your coupon “{name}” ({offer}) is valid until {until}. Use it before then.",
    ),
    ("zh", "coupon.issued"): ("您有一张新优惠券：{name}", "优惠券“{name}”已放入您的券包：{offer}，有效期至{until}。"),
    ("zh", "claim.rejected"): ("未能领到优惠券：{name}", "很抱歉，您申请的“{name}”未能领取成功。{reason}"),
    ("zh", "coupon.expiring"): ("您的优惠券即将到期：{name}", "优惠券“{name}”（{offer}）有效期至{until}，请尽快使用。"),
}

_MIDNIGHTS = {"en": "the end of {day}", "zh": "{day}24:00"}
"""An end at midnight: "12:00 AM of the 12th" is read as the end of the 12th, or as noon."""

_REASONS = {
    "en": {"SOLD_OUT": "All coupons are gone.", "PAUSED": "The offer was stopped.", "": "Nothing was taken from you."},
    "zh": {"SOLD_OUT": "优惠券已领完。", "PAUSED": "活动已暂停。", "": "您的领取次数未被扣除。"},
}

_OFFERS = {
    ("en", "amount_off"): "{amount} off",
    ("en", "percent_off"): "{percent} % off",
    ("en", "above"): "{value} from {threshold}",
    ("en", "capped"): "{value}, up to {cap}",
    ("en", "any"): "a discount",
    ("zh", "amount_off"): "立减{amount}",
    ("zh", "percent_off"): "优惠{percent}%",
    ("zh", "above"): "满{threshold}{value}",
    ("zh", "capped"): "{value}，最多减{cap}",
    ("zh", "any"): "优惠",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """What a message tells of a coupon. Amounts in minor units; ``percent_off_bp`` in basis points."""

    name: str
    type: str
    currency: str
    amount_minor: int | None
    percent_off_bp: int | None
    max_discount_minor: int | None
    threshold_minor: int
    timezone: str
    valid_to: datetime | None


def write_text(language: str, event: str, offer: Offer, reason: str | None = None) -> tuple[str, str]:
    """Subject and text. Neither holds a line end or a control character, whatever the template's name holds."""
    reasons = _REASONS[language]
    words = {
        "name": one_line(offer.name),
        "offer": offer_text(language, offer),
        "until": _until(language, offer),
        "reason": reasons.get(reason or "", reasons[""]),
    }
    subject, text = _WORDS[language, event]
    return subject.format(**words), text.format(**words)


def money_text(language: str, amount_minor: int, currency: str) -> str:
    """``CN¥20.00``, as the language writes it: 2000 CNY; yen have no decimals, dinars of Kuwait three."""
    amount = Decimal(amount_minor).scaleb(-EXPONENTS[currency])
    return format_currency(amount, currency, locale=LOCALES[language])


def offer_text(language: str, offer: Offer) -> str:
    """What the coupon is worth, in a few words."""
    if offer.type == "percent_off" and offer.percent_off_bp is not None:
        percent = format_decimal(Decimal(offer.percent_off_bp).scaleb(-2), locale=LOCALES[language])
        value = _OFFERS[language, "percent_off"].format(percent=percent)
    elif offer.amount_minor is not None:
        amount = money_text(language, offer.amount_minor, offer.currency)
        value = _OFFERS[language, "amount_off"].format(amount=amount)
    else:
        value = _OFFERS[language, "any"]
    if offer.threshold_minor:
        threshold = money_text(language, offer.threshold_minor, offer.currency)
        value = _OFFERS[language, "above"].format(value=value, threshold=threshold)
    if offer.type == "percent_off" and offer.max_discount_minor:
        cap = money_text(language, offer.max_discount_minor, offer.currency)
        value = _OFFERS[language, "capped"].format(value=value, cap=cap)
    return value


def one_line(text: str) -> str:
    """``text`` on one line, without what does not print: it stands in the headers of mail."""
    spaced = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(spaced.split())[:LONGEST_NAME]


def _until(language: str, offer: Offer) -> str:
    if offer.valid_to is None:
        return ""
    last = day_before_midnight(offer.valid_to, offer.timezone)
    if last is not None:
        return _MIDNIGHTS[language].format(day=format_date(last, "medium", locale=LOCALES[language]))
    local = offer.valid_to.astimezone(ZoneInfo(offer.timezone))
    return format_datetime(local, "medium", tzinfo=ZoneInfo(offer.timezone), locale=LOCALES[language])
